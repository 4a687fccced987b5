#include <fmt/format.h>

#include "experiments/report/html.hpp"
#include "experiments/report/sections.hpp"
#include "experiments/report/settings.hpp"
#include "experiments/text/suggest.hpp"

namespace fomoe::report {

using Row = std::vector<std::string>;

std::string changed_factors(const std::vector<Provenance>& provenance) {
  std::vector<std::string> texts;
  for (const Provenance& entry : provenance) {
    if (entry.detail.starts_with("× "))
      texts.push_back(entry.what + ' ' + entry.detail.substr(0, entry.detail.find(':')));
  }
  return texts.empty() ? "" : paragraph("Changed from the platform's file: " + scenario::joined(texts) + '.');
}

static std::string origins(const std::vector<Provenance>& provenance) {
  if (provenance.empty()) return "";
  std::string html = heading(3, "Where the numbers come from");
  for (const Origin origin : kOrigins) {
    std::vector<Row> rows;
    for (const Provenance& entry : provenance) {
      if (entry.origin == origin) rows.push_back({entry.what, entry.detail});
    }
    const std::string name = to_string(origin);
    if (!rows.empty()) {
      html += fmt::format("<div class=\"origin {}\">\n{}</div>\n", name,
                          table(fmt::format("{} ({})", name, rows.size()), {{"input"}, {"source"}}, rows));
    }
  }
  return html;
}

std::string inputs_section(const Inputs& inputs, std::string_view which) {
  std::string html = origins(inputs.provenance);
  if (!inputs.scenario.is_null())
    html += heading(3, "Scenario") +
            folded(fmt::format("The whole scenario, including defaults and overrides{}", which),
                   settings("", inputs.scenario));
  return html;
}

}  // namespace fomoe::report
