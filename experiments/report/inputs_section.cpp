#include <fmt/format.h>

#include <algorithm>

#include "experiments/report/html.hpp"
#include "experiments/report/sections.hpp"
#include "experiments/report/settings.hpp"
#include "experiments/text/suggest.hpp"

namespace fomoe::report {

namespace {

using Row = std::vector<std::string>;

std::string by_origin(const std::vector<Provenance>& provenance) {
  std::string html;
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

/// Names the inputs that are only assumed.
std::string assumed(const std::vector<Provenance>& provenance) {
  std::vector<std::string> names;
  for (const Provenance& entry : provenance) {
    if (entry.origin == Origin::assumed && std::find(names.begin(), names.end(), entry.what) == names.end())
      names.push_back(entry.what);
  }
  return names.empty()
             ? ""
             : paragraph("Assumed, neither measured nor computed: " + scenario::joined(names) + '.');
}

}  // namespace

std::string changed_factors(const std::vector<Provenance>& provenance,
                            const std::vector<std::string>& varied) {
  std::vector<std::string> texts;
  for (const Provenance& entry : provenance) {
    // "× 0.1: platform.rate_factor"
    const std::size_t colon = std::min(entry.detail.find(": "), entry.detail.size());
    const std::string key = entry.detail.substr(std::min(colon + 2, entry.detail.size()));
    if (entry.detail.starts_with("× ") && std::find(varied.begin(), varied.end(), key) == varied.end())
      texts.push_back(entry.what + ' ' + entry.detail.substr(0, colon));
  }
  return texts.empty() ? "" : paragraph("Changed from the platform's file: " + scenario::joined(texts) + '.');
}

std::string about_scenario(const Inputs& inputs, const std::vector<std::string>& varied) {
  const auto varies = [&](const std::string& key) {
    return std::find(varied.begin(), varied.end(), key) != varied.end();
  };
  std::string text;
  if (inputs.scenario.is_object() && inputs.scenario.contains("strategy") && !varies("strategy.method")) {
    const Json& strategy = inputs.scenario["strategy"];
    if (strategy.contains("method") && strategy["method"].is_string())
      text = "Method: " + strategy["method"].get<std::string>();
    if (!text.empty() && strategy.contains("local_steps") && strategy["local_steps"].is_number() &&
        !varies("strategy.local_steps"))
      text += ", K=" + strategy["local_steps"].dump();
  }
  return (text.empty() ? "" : paragraph(text + '.')) + changed_factors(inputs.provenance, varied);
}

std::string inputs_section(const Inputs& inputs, std::string_view sentence, bool brief) {
  std::string html;
  if (!inputs.provenance.empty()) {
    html += heading(3, "Where the numbers come from") + (sentence.empty() ? "" : paragraph(sentence));
    html += !brief ? by_origin(inputs.provenance)
                   : assumed(inputs.provenance) +
                         folded("All inputs and their sources", by_origin(inputs.provenance));
  }
  if (!inputs.scenario.is_null())
    html += heading(3, "Scenario") +
            folded("The whole scenario, including defaults and overrides", settings("", inputs.scenario));
  return html;
}

}  // namespace fomoe::report
