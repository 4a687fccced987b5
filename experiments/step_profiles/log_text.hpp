// Finds words and numbers in the lines of a log.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace fomoe::step_profiles {

/// Calls `use` with each line and its number from 1. Terminal colours and the line end are removed.
void for_each_line(const std::string& text,
                   const std::function<void(const std::string& line, std::int64_t number)>& use);

/// The word after `label`, up to a blank, "|" or "/"; empty if the line does not contain the label. For
/// example, the word after "tps:" in "tps: 7,282 " is "7,282".
std::optional<std::string> word_after(const std::string& line, std::string_view label);

/// Parses a number above zero. It may contain commas between thousands, or end in a suffix K, M, G, B, T or P
/// (powers of 1000). Throws FileError at `place` for any other text.
double logged_number(const std::string& word, const std::string& place, const std::string& label,
                     const std::string& example);
/// Parses a number in the form that logged_number() accepts, which must also be whole.
std::int64_t logged_count(const std::string& word, const std::string& place, const std::string& label,
                          const std::string& example);

}  // namespace fomoe::step_profiles
