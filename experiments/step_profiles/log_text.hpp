// Words and numbers in the lines of a log.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace fomoe::step_profiles {

/// Calls `use` with each line, without terminal colours and without its end, and its number from 1.
void for_each_line(const std::string& text,
                   const std::function<void(const std::string& line, std::int64_t number)>& use);

/// The word after `label`, up to a blank, "|" or "/"; nothing where the line has no such label. "tps: 7,282 "
/// has "7,282" after "tps:".
std::optional<std::string> word_after(const std::string& line, std::string_view label);

/// A number above zero, written plainly, with commas between thousands, or with a suffix K, M, G, B, T or P
/// of powers of 1000. Throws FileError at `place` for anything else.
double logged_number(const std::string& word, const std::string& place, const std::string& label,
                     const std::string& example);
/// The same, and whole.
std::int64_t logged_count(const std::string& word, const std::string& place, const std::string& label,
                          const std::string& example);

}  // namespace fomoe::step_profiles
