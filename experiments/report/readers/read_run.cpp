#include <algorithm>

#include "costmodel/report/report_fields.hpp"
#include "experiments/report/readers/fields.hpp"

namespace fomoe::report {

namespace {

using scenario::JsonObject;

/// Reads the fields of one of the tables in report_fields.hpp.
template <class Record, std::size_t N>
void read_fields(const JsonObject& json, Record& record, const costmodel::ReportField<Record> (&fields)[N]) {
  for (const auto& field : fields) {
    const std::string name(field.name);
    if (!field.required && !json.has(name)) continue;
    std::visit(
        [&]<class Value>(Value Record::*member) {
          if constexpr (std::is_same_v<Value, std::string>) {
            record.*member = json.text(name);
          } else if constexpr (std::is_same_v<Value, std::int64_t>) {
            record.*member = json.count(name, 0);
          } else {
            record.*member = name.ends_with("_s") ? json.seconds(name) : amount(json, name);
          }
        },
        field.member);
  }
}

costmodel::MeanRound read_round(const JsonObject& json) {
  costmodel::MeanRound round;
  read_fields(json, round, costmodel::kRoundFields);
  if (round.count == 0) json.refuse("count", "0", "a whole number of at least 1");
  if (!(round.duration_s > 0)) json.refuse("duration_s", "0", "seconds of more than zero");
  return round;
}

costmodel::SiteReport read_site(const JsonObject& json) {
  costmodel::SiteReport site;
  read_fields(json, site, costmodel::kSiteFields);
  return site;
}

costmodel::Cost read_cost(const JsonObject& json) {
  costmodel::Cost cost;
  if (json.has("currency")) {
    cost.currency = json.text("currency");
    cost.as_of = json.text("as_of");
    cost.cost_total = amount(json, "cost_total");
    cost.gpu_cost = amount(json, "gpu_cost");
    cost.egress_cost = amount(json, "egress_cost");
    cost.port_cost = amount(json, "port_cost");
    cost.energy_cost = amount(json, "energy_cost");
    if (json.has("store_cost")) cost.store_cost = amount(json, "store_cost");
  }
  cost.energy_kwh = known_amount(json, "energy_kwh");
  return cost;
}

costmodel::PublishedLoss read_loss(const JsonObject& json) {
  costmodel::PublishedLoss loss;
  if (!json.boolean("known")) {
    (void)json.filled_array("reasons");
    loss.level.reasons = texts(json, "reasons");
    return loss;
  }
  const auto points = [&](const char* name) {  // may be below zero
    const Json& value = json.at(name, "a number");
    if (!value.is_number()) json.refuse_value(name, value, "a number");
    return value.get<double>();
  };
  loss.level.points = points("points");
  loss.level.half = points("high") - loss.level.points;
  loss.level.studies = static_cast<int>(json.count("studies", 0, 1'000'000));
  return loss;
}

costmodel::Quality read_quality(const std::string& path, const JsonObject& json) {
  costmodel::Quality quality;
  quality.known = json.boolean("known");
  quality.source = json.text("source");
  if (json.has("loss")) quality.published = read_loss(inner(path, json, "loss"));
  if (!quality.known) {
    quality.reason = json.text("reason");
    return quality;
  }
  quality.perplexity = amount(json, "perplexity");
  quality.plus_minus = known_amount(json, "plus_minus");
  quality.equal_loss_factor = known_amount(json, "equal_loss_factor");
  return quality;
}

Provenance read_provenance(const JsonObject& json) {
  for (const Origin origin : kOrigins) {
    if (json.text("origin") == to_string(origin)) return {json.text("what"), origin, json.text("detail")};
  }
  json.refuse("origin", '"' + json.text("origin") + '"',
              "\"measured\", \"calibrated\", \"computed\" or \"assumed\"");
}

DrawnRound read_drawn_round(const std::string& path, const JsonObject& json) {
  DrawnRound round;
  round.nodes = texts(json, "nodes");
  round.timeline.round = json.count("round", 0);
  round.timeline.duration_s = json.seconds("duration_s");
  round.timeline.resolution_s = json.seconds("resolution_s");
  round.timeline.left_out_nodes = static_cast<std::int32_t>(json.count("left_out_nodes", 0, 1'000'000));
  each(path, json, "spans", [&](const JsonObject& span) {
    const auto kind = costmodel::enum_of<costmodel::SpanKind>(span.text("kind"));
    if (!kind)
      span.refuse("kind", '"' + span.text("kind") + '"',
                  "\"compute\", \"transfer\", \"bytes under way\" or \"upkeep\"");
    const auto last = static_cast<std::int64_t>(round.nodes.size()) - 1;
    round.timeline.spans.push_back({static_cast<std::int32_t>(span.count("node", 0, last)), *kind,
                                    span.text("what"), span.seconds("start_s"), span.seconds("end_s")});
  });
  return round;
}

/// An object that the page shows unchanged, or null if the result does not have it.
Json shown(const JsonObject& json, const std::string& name) {
  if (!json.has(name)) return nullptr;
  const Json& value = json.at(name, "an object");
  if (!value.is_object()) json.refuse_value(name, value, "an object");
  return value;
}

costmodel::RunReport read_figures(const std::string& path, const JsonObject& json) {
  costmodel::RunReport figures;
  figures.executor = json.text("executor");
  read_fields(json, figures, costmodel::kReportFields);
  figures.round = read_round(inner(path, json, "round"));
  (void)json.filled_array("sites");
  each(path, json, "sites", [&](const JsonObject& site) { figures.sites.push_back(read_site(site)); });
  read_fields(inner(path, json, "bottleneck"), figures.bottleneck, costmodel::kBottleneckFields);
  if (json.has("wall_clock_interval_s")) {
    const Json& ends = json.array("wall_clock_interval_s");
    if (ends.size() != 2 || !ends[0].is_number() || !ends[1].is_number())
      json.refuse_value("wall_clock_interval_s", ends, "two numbers");
    figures.wall_clock_interval_s = {ends[0].get<double>(), ends[1].get<double>()};
  }
  if (json.has("critical_path")) {
    each(path, json, "critical_path", [&](const JsonObject& step) {
      const auto activity = costmodel::enum_of<costmodel::Activity>(step.text("kind"));
      if (!activity)
        step.refuse("kind", '"' + step.text("kind") + '"', "\"compute\", \"transfer\" or \"upkeep\"");
      figures.critical_path.push_back(
          {step.text("what"), step.text("site"), *activity, step.seconds("seconds")});
    });
  }
  if (json.has("cost")) figures.cost = read_cost(inner(path, json, "cost"));
  if (json.has("quality")) figures.quality = read_quality(path, inner(path, json, "quality"));
  each(path, json, "provenance",
       [&](const JsonObject& entry) { figures.provenance.push_back(read_provenance(entry)); });
  if (json.has("memory_problem")) figures.memory_problem = json.text("memory_problem");
  if (json.has("warnings")) figures.warnings = texts(json, "warnings");
  figures.notes = texts(json, "notes");
  return figures;
}

/// The interval of the wall clock. Results of earlier versions have it among the errors of compared runs,
/// and some have one although the scenario lies outside of their conditions.
void read_interval(const std::string& path, const JsonObject& json, Run& run) {
  const auto is_object = [&](const char* key) { return json.has(key) && json.at(key, "").is_object(); };
  if (is_object("interval")) {
    const JsonObject interval = inner(path, json, "interval");
    if (interval.has("withheld")) {
      run.no_interval = interval.text("withheld");
    } else {
      run.interval = {interval.seconds("low_s"), interval.seconds("high_s")};
    }
    return;
  }
  if (!is_object("accuracy")) return;
  const JsonObject accuracy = inner(path, json, "accuracy");
  if (accuracy.has("no_interval")) {
    run.no_interval = accuracy.text("no_interval");
  } else if (run.validation_envelope.is_array() && !run.validation_envelope.empty()) {
    run.no_interval = "the scenario lies outside of the conditions of the runs that were compared";
  } else {
    const Json& ends = accuracy.array("wall_clock_s");
    if (ends.size() != 2 || !ends[0].is_number() || !ends[1].is_number())
      accuracy.refuse_value("wall_clock_s", ends, "two numbers");
    run.interval = {ends[0].get<double>(), ends[1].get<double>()};
  }
}

}  // namespace

Inputs read_inputs(const std::string& path, const JsonObject& result) {
  Inputs inputs;
  inputs.scenario = shown(result, "scenario");
  if (result.has("provenance"))
    each(path, result, "provenance",
         [&](const JsonObject& entry) { inputs.provenance.push_back(read_provenance(entry)); });
  return inputs;
}

Sensitivities read_sensitivities(const std::string& path, const JsonObject& result) {
  Sensitivities list;
  if (!result.has("sensitivity")) return list;
  each(path, result, "sensitivity", [&](const JsonObject& row) {
    list.executor = row.text("executor");
    list.wall_clock_s = row.seconds("wall_clock_s");
    list.inputs.push_back({row.text("input"), row.seconds("less_wall_clock_s"),
                           row.seconds("more_wall_clock_s"), amount(row, "less_factor"),
                           amount(row, "more_factor"), real(row, "change")});
  });
  return list;
}

Run read_run(const std::string& path, const Json& document) {
  const JsonObject json = fields(path, "", document);
  Run run;
  run.path = path;
  run.figures = read_figures(path, json);
  if (json.has("sent_bytes_per_site")) {
    const JsonObject sent = inner(path, json, "sent_bytes_per_site");
    for (const auto& item : json.at("sent_bytes_per_site", "").items())
      run.sent_bytes.emplace_back(item.key(), amount(sent, item.key()));
  }
  if (json.has("bandwidth_curve")) {
    const JsonObject curve = inner(path, json, "bandwidth_curve");
    run.bandwidth_executor = curve.text("executor");
    each(path, curve, "points", [&](const JsonObject& point) {
      run.bandwidth_curve.push_back({amount(point, "rate_factor"), point.seconds("wall_clock_s"),
                                     amount(point, "compute_utilization")});
    });
  }
  if (json.has("round_timeline")) run.round = read_drawn_round(path, inner(path, json, "round_timeline"));
  run.sensitivity = read_sensitivities(path, json);
  if (json.has("uncertainty")) {
    each(path, inner(path, json, "uncertainty"), "inputs", [&](const JsonObject& row) {
      run.uncertainty.push_back({row.text("input"), row.text("unit"), real(row, "low"), real(row, "high"),
                                 row.seconds("wall_clock_low_s"), row.seconds("wall_clock_high_s"),
                                 row.text("executor"), row.text("how")});
    });
  }
  run.scenario = shown(json, "scenario");
  run.goodput = shown(json, "goodput");
  if (json.has("goodput")) {
    const JsonObject goodput = inner(path, json, "goodput");
    const auto known = [&](const char* key) {  // null: it never ends
      return run.goodput.contains(key) && !run.goodput[key].is_null();
    };
    run.median_s = known("finish_p50_s") ? goodput.seconds("finish_p50_s") : HUGE_VAL;
    if (known("cost_p50")) run.median_cost = amount(goodput, "cost_p50");
  }
  run.replicas = shown(json, "replicas");
  if (json.has("validation_envelope")) {
    run.validation_envelope = json.at("validation_envelope", "");
    if (!run.validation_envelope.is_structured())
      json.refuse_value("validation_envelope", run.validation_envelope, "an array of sentences or an object");
  }
  read_interval(path, json, run);
  return run;
}

Run median_of(Run run) {
  if (run.median_s) run.figures.wall_clock_s = *run.median_s;
  if (run.median_s && run.figures.cost && !run.figures.cost->currency.empty())
    run.figures.cost->cost_total = run.median_cost.value_or(HUGE_VAL);
  return run;
}

}  // namespace fomoe::report
