// Text for messages and for terminals.
#pragma once
#include <string>
#include <string_view>

namespace fomoe {

/// The text of a message with control characters written as in "\x1b", except for line breaks and tabs.
/// Messages quote files, whose bytes must not control the terminal. A message would also end at a zero byte.
/// Of a line "place: key: got …; expected …", the place and what was got are shortened: they quote inputs,
/// which may be long.
std::string printable(const std::string& text);

/// An answer with control characters written as in "\u001b", which is the same text in JSON. Line breaks and
/// tabs stay. Names in scenarios and results must not control the terminal.
std::string printable_answer(std::string_view text);

}  // namespace fomoe
