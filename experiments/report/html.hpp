// The HTML elements of the page. Texts are escaped only here, so every function takes unescaped text.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "experiments/results/json_values.hpp"

namespace fomoe::report {

/// Escapes text for use between tags and inside quoted attributes.
std::string escaped(std::string_view text);

/// Escapes JSON for a <script type="application/json">. The result contains no "<", so no text in the JSON
/// can end the element.
std::string embedded(const scenario::Json& json);

std::string heading(int level, std::string_view text);
std::string paragraph(std::string_view text);
/// Parts side by side where the page is wide enough. Empty parts are left out.
std::string beside(const std::vector<std::string>& parts);
/// A highlighted paragraph.
std::string warning(std::string_view text);
std::string bullets(const std::vector<std::string>& texts);
/// Bullets with command lines.
std::string code_bullets(const std::vector<std::string>& texts);

struct Column {
  std::string title;
  bool number = false;  // aligned to the right
};
/// A table whose rows have a heading in the first cell. Columns that are empty in all rows are left out.
std::string table(std::string_view caption, const std::vector<Column>& columns,
                  const std::vector<std::vector<std::string>>& rows);

/// A section that can be unfolded; `html` consists of HTML elements made here.
std::string folded(std::string_view summary, const std::string& html, bool open = false);

struct Chart {
  std::string label;  // a sentence that describes the chart, for screen readers and as caption
  double height_rem = 18;
  scenario::Json data;  // for charts.js
  std::string table;    // the same data as an HTML table, made by table()
  bool open_table = false;
};
std::string chart(const Chart& chart);

/// Replaces each {{name}} of the template once; inserted text is not searched again. Throws std::logic_error
/// if the template contains a name without a value.
std::string filled(std::string_view page, const std::vector<std::pair<std::string, std::string>>& values);

}  // namespace fomoe::report
