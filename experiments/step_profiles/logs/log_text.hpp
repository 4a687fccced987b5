// Finds words and numbers in the lines of a log.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace fomoe::step_profiles {

/// A number of a log with the interval in which it lies, which is more than a point if it was rounded: 1.02K
/// is any number from 1,015 to 1,025.
struct Rounded {
  double value = 0, low = 0, high = 0;
  [[nodiscard]] static Rounded exactly(double value) { return {value, value, value}; }
  [[nodiscard]] Rounded divided_by(double divisor) const {
    return {value / divisor, low / divisor, high / divisor};
  }
};

/// Calls `use` with each line and its number from 1. Terminal colours and the line end are removed. The parts
/// of a line that a progress bar has written over each other are lines with the same number.
void for_each_line(const std::string& text,
                   const std::function<void(const std::string& line, std::int64_t number)>& use);

/// The word after `label`, up to a blank, "|", "/" or "]"; empty if the line does not contain the label. For
/// example, the word after "tps:" in "tps: 7,282 " is "7,282".
std::optional<std::string> word_after(const std::string& line, std::string_view label);
/// The text after `label`; empty if the line does not contain the label.
std::optional<std::string_view> text_after(std::string_view line, std::string_view label);
/// The whole number above 0 at the start of the text, which may have commas between thousands; empty if there
/// is none.
std::optional<std::int64_t> leading_count(std::string_view text);
/// The whole number above 0 after `label`, after blanks; empty if there is none.
std::optional<std::int64_t> count_after(std::string_view line, std::string_view label);

/// Parses a number above zero. It may contain commas between thousands, or end in a suffix K, M, G, B, T or P
/// (powers of 1000). Throws FileError at `place` for any other text.
double logged_number(const std::string& word, const std::string& place, const std::string& label,
                     const std::string& example);
/// Parses a number in the form that logged_number() accepts, which must also be whole.
std::int64_t logged_count(const std::string& word, const std::string& place, const std::string& label,
                          const std::string& example);
/// Parses a number in the form that logged_number() accepts. With a suffix, it was rounded to three digits.
Rounded logged_rounded(const std::string& word, const std::string& place, const std::string& label,
                       const std::string& example);

/// Bytes of "49.66GiB", "1165.17MiB" or a number without a unit times `unit`; empty for any other text.
std::optional<double> logged_bytes(std::string_view text, double unit);

/// A word as it is written for a shell: in quotes where it needs them.
std::string shell_word(const std::string& word);

}  // namespace fomoe::step_profiles
