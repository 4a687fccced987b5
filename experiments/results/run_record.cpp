#include "experiments/results/run_record.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <random>

#include "costmodel/math/replicas.hpp"
#include "costmodel/methods/all.hpp"
#include "costmodel/plan/method.hpp"
#include "costmodel/report/report_fields.hpp"
#include "experiments/json/json_object.hpp"
#include "experiments/results/json_values.hpp"
#include "experiments/scenario/toml/document.hpp"

namespace fomoe::scenario {
namespace {

constexpr JsonKind kRun = {"fomoe.run/1", "run report", "a report that fomoe-train run --output wrote",
                           "fomoe-train run S.toml --local --output run.json"};
constexpr JsonKind kWan = {"fomoe.wan/1", "report", "a report that fomoe-wan run --report wrote",
                           "fomoe-wan run S.toml --report run.json -- fomoe-train run S.toml"};

constexpr std::pair<const char*, double SeenConnection::*> kOfConnection[] = {
    {"segment_bytes", &SeenConnection::segment_bytes},
    {"least_round_trip_s", &SeenConnection::least_round_trip_s},
    {"round_trip_s", &SeenConnection::round_trip_s},
    {"retransmits", &SeenConnection::retransmits},
    {"sent_bytes", &SeenConnection::sent_bytes},
    {"received_bytes", &SeenConnection::received_bytes}};

Json to_json(const SeenConnections& connections) {
  Json list = Json::array();
  for (const SeenConnection& one : connections.list) {
    list.push_back({{"congestion_control", one.congestion_control}});
    for (const auto& [name, member] : kOfConnection) list.back()[name] = one.*member;
  }
  return {{"send_buffer_bytes", connections.send_buffer_bytes},
          {"receive_buffer_bytes", connections.receive_buffer_bytes},
          {"list", list}};
}

SeenConnections read_connections(const std::string& path, const Json& json) {
  const JsonObject object(path, kRun, "run.connections", json,
                          {"send_buffer_bytes", "receive_buffer_bytes", "list"});
  SeenConnections connections;
  const std::string number = "a number of zero or more";
  connections.send_buffer_bytes = object.number("send_buffer_bytes", number);
  connections.receive_buffer_bytes = object.number("receive_buffer_bytes", number);
  for (const Json& entry : object.array("list")) {
    const JsonObject one(path, kRun, "run.connections.list", entry,
                         {"congestion_control", "segment_bytes", "least_round_trip_s", "round_trip_s",
                          "retransmits", "sent_bytes", "received_bytes"});
    connections.list.push_back({one.text("congestion_control")});
    for (const auto& [name, member] : kOfConnection)
      connections.list.back().*member = one.number(name, number);
  }
  return connections;
}

Json to_json(const WholeRun& whole) {
  Json json = {{"restarts", whole.restarts}, {"wall_clock_s", whole.wall_clock_s}, {"lost_s", whole.lost_s}};
  for (const PartOfRun& part : whole.parts)
    json["parts"].push_back({{"first_round", part.first_round},
                             {"began_s", part.began_s},
                             {"saved_s", part.saved_s},
                             {"upkeep_s", part.upkeep_s},
                             {"absent", part.absent}});
  return json;
}

WholeRun read_whole_run(const std::string& path, const Json& json) {
  const JsonObject object(path, kRun, "run.whole_run", json, {"restarts", "wall_clock_s", "lost_s", "parts"});
  WholeRun whole;
  whole.restarts = object.count("restarts", 0);
  whole.wall_clock_s = object.seconds("wall_clock_s");
  whole.lost_s = object.seconds("lost_s");
  if (!object.has("parts")) return whole;
  for (const Json& entry : object.filled_array("parts")) {
    const JsonObject one(path, kRun, fmt::format("run.whole_run.parts[{}]", whole.parts.size()), entry,
                         {"first_round", "began_s", "saved_s", "upkeep_s", "absent"});
    PartOfRun part;
    const PartOfRun before = whole.parts.empty() ? PartOfRun() : whole.parts.back();
    part.first_round = one.count("first_round", before.first_round);
    part.began_s = one.seconds("began_s");
    part.saved_s = one.seconds("saved_s");
    part.upkeep_s = one.seconds("upkeep_s");
    if (part.saved_s < part.began_s || part.began_s < before.saved_s)
      one.refuse("saved_s", fmt::format("{}", part.saved_s),
                 "seconds that do not go back from one part of the run to the next");
    for (const Json& site : one.array("absent")) {
      if (!site.is_string()) one.refuse_value("absent", site, "names of sites");
      part.absent.push_back(site.get<std::string>());
    }
    whole.parts.push_back(std::move(part));
  }
  return whole;
}

Json to_json(const RunRecord& record) {
  Json json = {{"id", record.id},
               {"started_at", record.started_at},
               {"paced", record.paced},
               {"in_turn", record.in_turn},
               {"whole", record.whole},
               {"scenario_toml", record.source.toml},
               {"files", record.source.files}};
  if (record.all) json["whole_run"] = to_json(*record.all);
  if (!record.code.empty()) json["code"] = record.code;
  if (record.threads > 0) {
    json["threads"] = record.threads;
    json["waited_share"] = record.waited_share;
  }
  if (!record.connections.list.empty()) json["connections"] = to_json(record.connections);
  return json;
}

Json to_json(const std::vector<SeedResult>& seeds) {
  std::vector<double> perplexities;
  Json runs = Json::array();
  for (const SeedResult& one : seeds) {
    perplexities.push_back(one.perplexity);
    runs.push_back({{"seed", one.seed}, {"perplexity", one.perplexity}});
  }
  const costmodel::Spread spread = costmodel::spread_of(perplexities);
  return {{"n", seeds.size()},
          {"perplexity",
           {{"mean", spread.mean},
            {"standard_deviation", spread.standard_deviation},
            {"mean_low", spread.mean_low},
            {"mean_high", spread.mean_high}}},
          {"runs", runs}};
}

RunRecord read_record(const std::string& path, const Json& json) {
  const JsonObject object(path, kRun, "run", json,
                          {"id", "started_at", "paced", "in_turn", "whole", "scenario_toml", "files", "code",
                           "threads", "waited_share", "whole_run", "connections"});
  RunRecord record;
  record.id = object.text("id");
  record.started_at = object.text("started_at");
  record.paced = object.boolean("paced");
  record.in_turn = object.boolean("in_turn");
  record.whole = object.boolean("whole");
  if (object.has("threads")) {
    record.threads = static_cast<int>(object.count("threads", 1));
    record.waited_share = object.seconds("waited_share");
  }
  if (object.has("connections"))
    record.connections = read_connections(path, object.at("connections", "what the kernel said"));
  if (object.has("whole_run"))
    record.all = read_whole_run(path, object.at("whole_run", "what is known of the whole run"));
  record.source.toml = object.text("scenario_toml");
  const Json& files = object.at("files", "the files of the scenario");
  for (const auto& item : files.items()) {
    if (!item.value().is_string()) object.refuse_value("files", item.value(), "texts");
    record.source.files[item.key()] = item.value().get<std::string>();
  }
  return record;
}

// Reports have more keys than these, and later versions may add further ones, so only the needed keys are
// read.
double number(const std::string& path, const Json& json, const std::string& where, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number() || !std::isfinite(found->get<double>()) ||
      found->get<double>() < 0) {
    fail(path, where + key, found == json.end() ? "nothing" : found->dump(), "a number of at least 0",
         kRun.remedy);
  }
  return found->get<double>();
}

/// Reads the numbers of one of the tables in report_fields.hpp.
template <class Record, std::size_t N>
void read_numbers(const std::string& path, const Json& json, const std::string& where, Record& record,
                  const costmodel::ReportField<Record> (&fields)[N]) {
  for (const auto& field : fields) {
    if (!field.required && !json.contains(std::string(field.name))) continue;
    std::visit(
        [&]<class Value>(Value Record::*member) {
          if constexpr (!std::is_same_v<Value, std::string>)
            record.*member = static_cast<Value>(number(path, json, where, field.name.data()));
        },
        field.member);
  }
}

costmodel::RunReport read_figures(const std::string& path, const Json& json) {
  costmodel::RunReport report;
  read_numbers(path, json, "", report, costmodel::kReportFields);
  report.executor = json["executor"];
  if (!json.contains("round") || !json["round"].is_object())
    fail(path, "round", "nothing", "the mean round", kRun.remedy);
  read_numbers(path, json["round"], "round.", report.round, costmodel::kRoundFields);
  if (json["round"].contains("upkeep_delay_s"))
    report.round.upkeep_delay_s = number(path, json["round"], "round.", "upkeep_delay_s");
  for (const Json& note : json.value("notes", Json::array()))
    if (note.is_string()) report.notes.push_back(note);
  if (!json.contains("round_durations_s")) return report;
  const Json& durations = json["round_durations_s"];
  if (!durations.is_array() || !std::all_of(durations.begin(), durations.end(), [](const Json& seconds) {
        return seconds.is_number() && seconds.get<double>() >= 0;
      }))
    fail(path, "round_durations_s", durations.dump(), "a list of seconds", kRun.remedy);
  report.round_durations_s = durations.get<std::vector<double>>();
  return report;
}

/// The settings with which the run was executed and whose defaults may have changed since.
std::vector<std::string> settings_of(const Json& json) {
  std::vector<std::string> settings;
  const auto strategy =
      json.contains("scenario") ? json["scenario"].value("strategy", Json::object()) : Json::object();
  for (const char* name : {"fragments", "overlap_steps"}) {
    if (strategy.contains(name) && strategy[name].is_number_integer())
      settings.push_back(fmt::format("strategy.{}={}", name, strategy[name].dump()));
  }
  const bool plain = strategy.contains("compression") &&
                     strategy["compression"].value("kind", "") == "none" &&
                     !strategy.value("secure_aggregation", false);
  if (plain && strategy.contains("payload_dtype")) {
    const auto type = strategy["payload_dtype"].get<std::string>();
    settings.push_back("strategy.payload_dtype=" + type);
    const costmodel::Method* method = costmodel::find_method(strategy.value("method", ""));
    if (method != nullptr && costmodel::has_axis(*method, "parameter_dtype"))
      settings.push_back("strategy.parameter_dtype=" + strategy.value("parameter_dtype", type));
  }
  return settings;
}

}  // namespace

RunRecord new_run_record() {
  RunRecord record;
  std::random_device device;
  record.id = fmt::format("{:08x}{:08x}", device(), device());
  record.started_at =
      fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                  fmt::gmtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())));
  return record;
}

std::string run_report_json(const costmodel::RunReport& report, const costmodel::Scenario& scenario,
                            const RunRecord& record) {
  Json document = to_json(report);
  document["scenario"] = to_json(scenario);
  document["run"] = to_json(record);
  if (!record.round_timeline.empty()) document["round_timeline"] = Json::parse(record.round_timeline);
  if (!record.validation.empty()) document["validation"] = Json::parse(record.validation);
  if (!record.seeds.empty()) document["seeds"] = to_json(record.seeds);
  return to_text(document);
}

MeasuredRun read_measured_run(const std::string& path, const AlsoRead& also) {
  Json json = read_any_json(path, {&kRun, &kWan});
  if (json["schema"] == kWan.schema) {
    if (!json.contains("run_report") || !json["run_report"].is_object())
      fail(path, "run_report", "nothing", "the report of a training run", kWan.remedy);
    json = Json(json["run_report"]);
  }
  const bool has = json.contains("executor") && json["executor"].is_string();
  if (!has || json["executor"] != "measured") {
    fail(path, "executor", has ? json["executor"].dump() : "nothing", "\"measured\", a run that took place",
         kRun.remedy);
  }
  if (!json.contains("run"))
    fail(path, "run", "nothing", "the scenario of the run, which older versions did not write into reports",
         kRun.remedy);
  MeasuredRun run = {path, read_record(path, json["run"]), read_figures(path, json)};
  run.record.settings = settings_of(json);
  if (run.record.in_turn && !also.in_turn)
    fail(path, "run.in_turn", "true", "false (one process per site, all at the same time)", kRun.remedy);
  if (!run.record.whole && !also.resumed)
    fail(path, "run.whole", "false", "true (a run that was not resumed)", kRun.remedy);
  if (!run.record.whole && (!run.record.all || run.record.all->parts.size() < 2))
    fail(path, "run.whole_run.parts", "nothing",
         "the parts of the whole run, which later versions keep beside the checkpoints of the first site",
         kRun.remedy);
  return run;
}

}  // namespace fomoe::scenario
