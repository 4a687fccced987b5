// Text for messages.
#pragma once
#include <string>

namespace fomoe {

/// The text with control characters written as in "\x1b", except for line breaks and tabs. Messages quote
/// files, whose bytes must not control the terminal. A message would also end at a zero byte.
std::string printable(const std::string& text);

}  // namespace fomoe
