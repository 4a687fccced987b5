// The pieces of a page. Texts are escaped here and nowhere else: what takes a text takes it as it is.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "experiments/results/json_values.hpp"

namespace fomoe::report {

/// Text for between tags and inside quoted attributes.
std::string escaped(std::string_view text);

/// For a <script type="application/json">: no "<" that could end it.
std::string embedded(const scenario::Json& json);

std::string heading(int level, std::string_view text);
std::string paragraph(std::string_view text);
/// A paragraph that stands out.
std::string warning(std::string_view text);
std::string bullets(const std::vector<std::string>& texts);

struct Column {
  std::string title;
  bool number = false;  // to the right
};
/// The first cell of a row is its heading. Columns in which no row says anything are left out.
std::string table(std::string_view caption, const std::vector<Column>& columns,
                  const std::vector<std::vector<std::string>>& rows);

/// Content that can be unfolded; `html` is made of pieces.
std::string folded(std::string_view summary, const std::string& html, bool open = false);

struct Chart {
  std::string label;  // what it shows, in a sentence: for those who do not see it, and below it
  double height_rem = 18;
  scenario::Json data;  // for charts.js
  std::string table;    // the same in numbers, made by table()
};
std::string chart(const Chart& chart);

/// Replaces each {{name}} of the template once; what is put in is not searched. Throws std::logic_error where
/// the template has a name that is not given.
std::string filled(std::string_view page, const std::vector<std::pair<std::string, std::string>>& values);

}  // namespace fomoe::report
