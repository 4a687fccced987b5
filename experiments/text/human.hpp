// Formats numbers and tables for people. Machines read JSON and CSV, which keep every digit.
#pragma once
#include <string>
#include <vector>

#include "platforms/provenance.hpp"

namespace fomoe::commands {

std::string human_time(double seconds);   // "1.23 ms", "4.56 s", "3 min 20 s", "5 h 12 min", "3 d 4 h"
std::string human_bytes(double bytes);    // decimal: "1.23 MB"
std::string human_count(double count);    // "124.6 M"
std::string human_percent(double share);  // "12.3 %"
std::string human_whole(double number);   // all digits: "25,690"
/// "12.34 USD"; from 1000 on without decimals, "1,234 USD". No currency: only the number.
std::string human_money(double amount, const std::string& currency);

/// The number of characters of a UTF-8 text.
std::size_t text_width(const std::string& text);

using Row = std::vector<std::string>;
/// Aligns the first column left and the others right, with two spaces between columns.
std::string aligned(const std::vector<Row>& rows, const std::string& indent = "");

/// The same with a last column that is not aligned, because its texts differ much in length.
std::string aligned_before(const std::vector<Row>& rows, const std::vector<std::string>& last_column);

/// The list "Inputs and where they come from", with one line for each input.
std::string human_provenance(const std::vector<Provenance>& provenance);

/// A CSV cell, with quotes if it needs them. A text that a spreadsheet would take for a formula, since it
/// begins with = + - @, a tab or a carriage return and is no number, gets an apostrophe in front.
std::string csv_cell(const std::string& name);

}  // namespace fomoe::commands
