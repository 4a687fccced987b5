#include "experiments/report/readers/fields.hpp"
#include "experiments/text/units.hpp"

namespace fomoe::report {

using scenario::JsonObject;

namespace {

// Readers think of links in bits, and of what is inside a site in bytes: "platform.bandwidth_bytes_per_s" is
// shown as "platform.bandwidth_Mbps".
void show_rates_in_bits(Sweep& sweep) {
  const std::string in_bytes = "_bytes_per_s";
  for (std::size_t a = 0; a < sweep.axes.size(); ++a) {
    std::string& axis = sweep.axes[a];
    if (!axis.starts_with("platform.") || !axis.ends_with(in_bytes)) continue;
    axis.replace(axis.size() - in_bytes.size(), in_bytes.size(), "_Mbps");
    for (Sweep::Row& row : sweep.rows)
      if (row.values[a].is_number())
        row.values[a] = row.values[a].get<double>() * scenario::kBitsPerByte / 1e6;
  }
}

}  // namespace

Sweep read_sweep(const std::string& path, const Json& document) {
  const JsonObject json = fields(path, "", document);
  Sweep sweep;
  sweep.path = path;
  sweep.executor = json.text("executor");
  sweep.axes = texts(json, "axes");
  each(path, json, "rows", [&](const JsonObject& entry) {
    Sweep::Row& row = sweep.rows.emplace_back();
    for (const std::string& axis : sweep.axes) {
      const Json& value = entry.at(axis, "a number or a string");
      if (!value.is_primitive() || value.is_null()) entry.refuse_value(axis, value, "a number or a string");
      row.values.push_back(value);
    }
    if (entry.has("problem")) {
      row.problem = entry.text("problem");
      if (!entry.has("wall_clock_s")) return;  // the combination is impossible
    }
    row.wall_clock_s = entry.seconds("wall_clock_s");
    row.compute_utilization = amount(entry, "compute_utilization");
    row.bytes_sent_per_site_per_round = amount(entry, "bytes_sent_per_site_per_round");
    row.cost = known_amount(entry, "cost_total");
    if (row.cost && entry.has("currency") && entry.at("currency", "").is_string())
      sweep.currency = entry.text("currency");
    row.energy_kwh = known_amount(entry, "energy_kwh");
    row.perplexity = known_amount(entry, "perplexity");
  });
  show_rates_in_bits(sweep);
  sweep.inputs = read_inputs(path, json);
  return sweep;
}

Solved read_solved(const std::string& path, const Json& document) {
  const JsonObject json = fields(path, "", document);
  Solved solved;
  solved.path = path;
  solved.executor = json.text("executor");
  solved.key = json.text("for");
  solved.unit = json.text("unit");
  each(path, json, "answers", [&](const JsonObject& entry) {
    solved.answers.push_back({entry.text("target"), entry.text("answer"),
                              entry.has("text") && entry.at("text", "").is_string() ? entry.text("text") : "",
                              entry.text("why"), amount(entry, "target_value"),
                              known_amount(entry, "value")});
  });
  solved.inputs = read_inputs(path, json);
  return solved;
}

}  // namespace fomoe::report
