#include "experiments/report/html.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "experiments/text/human.hpp"

namespace fomoe::report {

std::string escaped(std::string_view text) {
  std::string html;
  for (const char c : text) {
    switch (c) {
      case '&':
        html += "&amp;";
        break;
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '"':
        html += "&quot;";
        break;
      case '\'':
        html += "&#39;";
        break;
      default:
        html += c;
    }
  }
  return html;
}

std::string embedded(const scenario::Json& json) {
  std::string text;
  for (const char c : json.dump(-1, ' ', false, scenario::Json::error_handler_t::replace)) {
    if (c == '<') {
      text += "\\u003c";
    } else {
      text += c;
    }
  }
  return text;
}

std::string heading(int level, std::string_view text) {
  return fmt::format("<h{0}>{1}</h{0}>\n", level, escaped(text));
}

std::string beside(const std::vector<std::string>& parts) {
  std::string html;
  for (const std::string& part : parts) {
    if (!part.empty()) html += "<div>\n" + part + "</div>\n";
  }
  return "<div class=\"beside\">\n" + html + "</div>\n";
}

std::string warning(std::string_view text) {
  return fmt::format("<p class=\"warning\"><strong>{}</strong></p>\n", escaped(text));
}

std::string paragraph(std::string_view text) { return fmt::format("<p>{}</p>\n", escaped(text)); }

std::string bullets(const std::vector<std::string>& texts) {
  std::string html = "<ul>\n";
  for (const std::string& text : texts) html += fmt::format("<li>{}</li>\n", escaped(text));
  return html + "</ul>\n";
}

std::string code_bullets(const std::vector<std::string>& texts) {
  std::string html = "<ul>\n";
  for (const std::string& text : texts) html += fmt::format("<li><code>{}</code></li>\n", escaped(text));
  return html + "</ul>\n";
}

std::string table(std::string_view caption, const std::vector<Column>& columns,
                  const std::vector<std::vector<std::string>>& rows) {
  // Wide tables scroll in their own box, which the keyboard can reach.
  std::string html = fmt::format(
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
      "aria-label=\"{0}\">\n<table>\n<caption>{0}</caption>\n"
      "<thead><tr>",
      escaped(caption));
  // On a phone a column of long texts keeps some width and lets the table scroll; short ones do not need it.
  constexpr std::size_t kLong = 20;
  const auto kind_of = [&](std::size_t i) {
    const bool is_long = std::any_of(rows.begin(), rows.end(), [&](const auto& row) {
      return i < row.size() && commands::text_width(row[i]) > kLong;
    });
    return columns[i].number ? " class=\"number\"" : is_long ? " class=\"long\"" : "";
  };
  const auto says_nothing = [&](std::size_t i) {
    return std::all_of(rows.begin(), rows.end(),
                       [&](const auto& row) { return i >= row.size() || row[i].empty(); });
  };
  std::vector<std::size_t> shown;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (!says_nothing(i)) shown.push_back(i);
  }
  std::vector<std::string> kinds;
  for (std::size_t i = 0; i < columns.size(); ++i) kinds.emplace_back(kind_of(i));
  for (const std::size_t i : shown)
    html += fmt::format("<th scope=\"col\"{}>{}</th>", kinds[i], escaped(columns[i].title));
  html += "</tr></thead>\n<tbody>\n";
  for (const auto& row : rows) {
    html += "<tr>";
    for (const std::size_t i : shown) {
      const std::string cell = i < row.size() ? escaped(row[i]) : "";
      html += i == 0 ? fmt::format("<th scope=\"row\"{}>{}</th>", kinds[i], cell)
                     : fmt::format("<td{}>{}</td>", kinds[i], cell);
    }
    html += "</tr>\n";
  }
  return html + "</tbody>\n</table>\n</div>\n";
}

std::string folded(std::string_view summary, const std::string& html, bool open) {
  return fmt::format("<details{}>\n<summary>{}</summary>\n{}</details>\n", open ? " open" : "",
                     escaped(summary), html);
}

std::string chart(const Chart& chart) {
  return fmt::format(
      "<figure class=\"chart\">\n<div class=\"drawing\" style=\"--height:{:.4g}\"><canvas role=\"img\" "
      "aria-label=\"{}\"></canvas></div>\n<script type=\"application/json\">{}</script>\n"
      "<figcaption>{}</figcaption>\n{}</figure>\n",
      chart.height_rem, escaped(chart.label + " The table below has the same numbers."), embedded(chart.data),
      escaped(chart.label), folded("As a table", chart.table, chart.open_table));
}

std::string filled(std::string_view page, const std::vector<std::pair<std::string, std::string>>& values) {
  std::string text;
  while (true) {
    const std::size_t begin = page.find("{{");
    text += page.substr(0, begin);
    if (begin == std::string_view::npos) return text;
    const std::size_t end = page.find("}}", begin);
    if (end == std::string_view::npos) throw std::logic_error("page template: {{ without }}");
    const std::string_view name = page.substr(begin + 2, end - begin - 2);
    const auto value =
        std::find_if(values.begin(), values.end(), [&](const auto& given) { return given.first == name; });
    if (value == values.end()) throw std::logic_error("page template: nothing for " + std::string(name));
    text += value->second;
    page.remove_prefix(end + 2);
  }
}

}  // namespace fomoe::report
