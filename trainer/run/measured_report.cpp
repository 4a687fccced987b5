#include "trainer/run/measured_report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "costmodel/timeline/report_assembly.hpp"
#include "experiments/json/json.hpp"
#include "experiments/text/human.hpp"
#include "trainer/record/interval_stream.hpp"
#include "trainer/run/run_data.hpp"

namespace fomoe::trainer {

using costmodel::Timeline;
using nlohmann::json;

namespace {

Timeline timeline_of(const std::vector<Observation>& observations, const IntervalSummary& intervals) {
  Timeline timeline = intervals.timeline();
  for (const Observation& seen : observations) {
    for (const Observation::OfNode& one : seen.nodes) {
      for (std::size_t to = 0; to < one.traffic.sent_to.size(); ++to)
        timeline.sent.add(one.node, static_cast<int>(to), static_cast<double>(one.traffic.sent_to[to]));
    }
    for (std::size_t to = 0; to < seen.sent_by_store.size(); ++to)  // the store is the last node
      timeline.sent.add(static_cast<int>(seen.sent_by_store.size()) - 1, static_cast<int>(to),
                        static_cast<double>(seen.sent_by_store[to]));
  }
  return timeline;
}

std::string three_digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

json routers_json(const std::vector<RouterFigures>& routers) {
  json layers = json::array();
  for (const RouterFigures& layer : routers) {
    layers.push_back(
        {{"entropy", layer.entropy}, {"load_cv", layer.load_cv}, {"ghost_share", layer.ghost_share}});
  }
  return layers;
}

constexpr std::pair<const char*, std::optional<double> NodeNorms::*> kNorms[] = {
    {"gradient", &NodeNorms::gradient},
    {"update", &NodeNorms::update},
    {"outer_difference", &NodeNorms::outer_difference},
    {"outer_update", &NodeNorms::outer_update}};

json norms_json(const NodeNorms& norms) {
  json out;
  for (const auto& [name, member] : kNorms) out[name] = norms.*member ? json(*(norms.*member)) : json();
  return out;
}

NodeNorms norms_from(const json& in) {
  NodeNorms norms;
  for (const auto& [name, member] : kNorms) {
    if (!in.at(name).is_null()) norms.*member = in.at(name).get<double>();
  }
  return norms;
}

}  // namespace

std::string to_text(const Observation& observation) {
  json out = {{"peak_memory_bytes", observation.peak_memory_bytes},
              {"whole_validation_loss", observation.whole_validation_loss},
              {"upkeep_s", observation.upkeep_s},
              {"sent_by_store", observation.sent_by_store},
              {"nodes", json::array()},
              {"intervals", to_text(observation.intervals)}};
  for (const Observation::OfNode& one : observation.nodes) {
    out["nodes"].push_back({{"node", one.node},
                            {"sent", one.traffic.sent},
                            {"received", one.traffic.received},
                            {"sent_to", one.traffic.sent_to},
                            {"validation_loss", one.validation_loss},
                            {"routed", one.routed},
                            {"routers", routers_json(one.routers)},
                            {"norms", norms_json(one.norms)}});
  }
  return out.dump();
}

Observation observation_from(const std::string& text) {
  const json in = json::parse(text);
  Observation out;
  out.peak_memory_bytes = in.at("peak_memory_bytes");
  out.whole_validation_loss = in.at("whole_validation_loss");
  out.upkeep_s = in.at("upkeep_s");
  out.sent_by_store = in.at("sent_by_store").get<std::vector<std::int64_t>>();
  for (const json& one : in.at("nodes")) {
    out.nodes.push_back({one.at("node"),
                         {one.at("sent").get<BytesByClass>(), one.at("received").get<BytesByClass>(),
                          one.at("sent_to").get<std::vector<std::int64_t>>()},
                         one.at("validation_loss"),
                         one.at("routed").get<std::vector<std::vector<std::int64_t>>>(),
                         {},
                         norms_from(one.at("norms"))});
    for (const json& layer : one.at("routers"))
      out.nodes.back().routers.push_back({layer.at("entropy"), layer.at("load_cv"), layer.at("ghost_share")});
  }
  out.intervals = intervals_from(in.at("intervals"));
  return out;
}

std::string routing_csv(const costmodel::Scenario& scenario, const costmodel::Plan& plan,
                        const std::vector<Observation>& observations) {
  std::string text = "layer,expert,site,count\n";
  for (const Observation& seen : observations) {
    for (const Observation::OfNode& one : seen.nodes) {
      const auto site = static_cast<std::size_t>(plan.nodes[static_cast<std::size_t>(one.node)].site);
      for (std::size_t layer = 0; layer < one.routed.size(); ++layer) {
        for (std::size_t expert = 0; expert < one.routed[layer].size(); ++expert) {
          text += std::to_string(layer) + ',' + std::to_string(expert) + ',' +
                  commands::csv_cell(scenario.platform.sites[site].name) + ',' +
                  std::to_string(one.routed[layer][expert]) + '\n';
        }
      }
    }
  }
  return text;
}

std::string validation_json(const costmodel::Scenario& scenario, const costmodel::Plan& plan,
                            const std::vector<Observation>& observations, const ReportContext& context) {
  json sites = json::array();
  double sum = 0, whole = -1;
  for (const Observation& seen : observations) {
    whole = std::max(whole, seen.whole_validation_loss);
    for (const Observation::OfNode& one : seen.nodes) {
      if (one.validation_loss < 0) continue;
      const auto site = static_cast<std::size_t>(plan.nodes[static_cast<std::size_t>(one.node)].site);
      sites.push_back({{"site", scenario.platform.sites[site].name},
                       {"loss", one.validation_loss},
                       {"routers", routers_json(one.routers)},
                       {"norms", norms_json(one.norms)}});
      sum += one.validation_loss;
    }
  }
  if (sites.empty()) return "";
  const double mean = sum / static_cast<double>(sites.size());
  return scenario::to_text({{"data", context.validation_data},
                            {"sequences", context.validation_sequences},
                            {"loss", whole >= 0 ? whole : mean},
                            {"mean_site_loss", mean},
                            {"sites", sites}});
}

std::string note_on_links(const ReportContext& context) {
  if (context.links.starts_with("emulated") && !context.in_turn) {
    return std::string(
               "fomoe-wan emulated the uplinks, downlinks, paths and latencies of its platform on one "
               "machine; ") +
           (context.links == "emulated and checked"
                ? "before the run it measured that they are within 5 % of the platform"
                : "it did not measure them before the run (--no-check)") +
           "; link_busy_share compares the measured bytes with this scenario's links";
  }
  return "the run used the real connections between its processes, not the scenario's links; "
         "link_busy_share compares the measured bytes with the scenario's links";
}

namespace {

// In the timeline, a site that validates or saves neither computes nor sends.
void take_upkeep_from_idle(costmodel::RunReport& report, const costmodel::Plan& plan,
                           const std::vector<Observation>& observations) {
  const auto rounds = static_cast<double>(report.round.count);
  for (const Observation& seen : observations) {
    for (const Observation::OfNode& one : seen.nodes) {
      costmodel::SiteReport& site =
          report.sites[static_cast<std::size_t>(plan.nodes[static_cast<std::size_t>(one.node)].site)];
      const double upkeep_s = std::min(seen.upkeep_s / rounds, site.idle_s + site.upkeep_s) - site.upkeep_s;
      if (upkeep_s <= 0) continue;  // another node of the site, which does the same
      site.upkeep_s += upkeep_s;
      site.idle_s -= upkeep_s;
    }
  }
  costmodel::finish_report(report);
}

}  // namespace

costmodel::RunReport measured_report(const costmodel::Scenario& scenario, const costmodel::Plan& plan,
                                     const std::vector<Observation>& observations,
                                     const IntervalSummary& intervals, const ReportContext& context) {
  // All rounds were executed in order, so the plan has one class of rounds, whose timeline is the whole run.
  costmodel::Plan executed = plan;
  executed.rounds = plan.rounds - context.first_round;
  executed.steps = context.steps;
  executed.classes = {{executed.rounds, 0, /*identical=*/false,
                       [first = context.first_round](std::int64_t i) { return first + i; },
                       plan.classes.front().overlapping}};
  costmodel::Scenario measured = scenario;
  // a placeholder: times were measured, and nothing below uses it
  measured.compute = costmodel::GivenStepTime{1};
  const Timeline timeline = timeline_of(observations, intervals);

  costmodel::RunReport report = costmodel::assemble_report(measured, executed, {timeline});
  report.executor = "measured";
  if (report.store) {  // not all rounds have as many
    report.store->requests = 0;
    for (std::int64_t round = context.first_round; round < plan.rounds; ++round)
      report.store->requests += costmodel::store_requests(plan.nodes, plan.round(round));
  }
  take_upkeep_from_idle(report, executed, observations);
  report.round.upkeep_delay_s = intervals.upkeep_delay_s() / static_cast<double>(executed.rounds);
  double loss = 0, whole_loss = -1;
  int validated = 0;
  for (const Observation& seen : observations) {
    whole_loss = std::max(whole_loss, seen.whole_validation_loss);
    for (const Observation::OfNode& one : seen.nodes) {
      const auto site = static_cast<std::size_t>(plan.nodes[static_cast<std::size_t>(one.node)].site);
      report.sites[site].memory_bytes = static_cast<double>(seen.peak_memory_bytes);
      if (one.validation_loss < 0) continue;
      loss += one.validation_loss;
      ++validated;
    }
  }
  if (validated > 0) {
    costmodel::Quality quality;
    quality.known = true;
    const std::string sequences =
                          "measured: " + std::to_string(context.validation_sequences) +
                          (is_synthetic(context.validation_data) ? " validation sequences of synthetic data, "
                                                                 : " validation sequences, "),
                      sites = std::to_string(validated) + " sites";
    const double mean = std::exp(loss / validated);
    if (whole_loss >= 0) {
      quality.perplexity = std::exp(whole_loss);
      quality.source =
          sequences +
          (plan.placement
               ? "loss of the model with the experts of all sites; the models of the " + sites +
                     ", each with its own experts,"
               : "loss of the mean of the models of " + sites + ", which can differ; these models") +
          " have a mean loss of perplexity " + three_digits(mean);
    } else {
      quality.perplexity = mean;
      quality.source = sequences + "mean loss of the models of " + sites;
    }
    report.quality = quality;
  }
  // Replace the provenance of assumed and computed inputs by that of the measurements; the entries after them
  // (prices, energy) stay.
  std::vector<Provenance> provenance = {
      {"times", Origin::measured, "this run on " + context.device},
      {"bytes sent", Origin::measured, "counted at each send"},
      {"memory", Origin::measured, "peak memory of the process that trained the site"}};
  if (!context.data.empty())
    provenance.push_back(
        {"training data", is_synthetic(context.data) ? Origin::assumed : Origin::measured, context.data});
  // Until version 1.0 there was none.
  if (context.assumed_warmup_steps > 0)
    provenance.push_back({"warm-up", Origin::assumed,
                          "the learning rate grows over a quarter of the steps (" +
                              std::to_string(context.assumed_warmup_steps) +
                              "), because trainer.warmup_steps is not given; version 1.0 had no warm-up"});
  if (context.paced) {
    for (Provenance origin : context.pace) {
      origin.what = "paced " + origin.what;
      provenance.push_back(std::move(origin));
    }
    report.notes.emplace_back(
        "compute was paced: every operation slept for the time that the scenario gives; transfers were "
        "real; no model was trained");
  }
  const std::size_t frame =
      costmodel::report_frame(measured, costmodel::counts_of(measured), executed.steps).provenance.size();
  provenance.insert(provenance.end(), report.provenance.begin() + static_cast<std::ptrdiff_t>(frame),
                    report.provenance.end());
  report.provenance = std::move(provenance);
  if (context.in_turn) {
    report.notes.emplace_back(
        "one process trained all sites one after the other: bytes and quality are those of a distributed "
        "run, but times are those of this process, not of sites that train in parallel");
  }
  if (context.first_round > 0) {
    report.notes.push_back("the run resumed after round " + std::to_string(context.first_round) +
                           "; times, bytes and tokens cover only the later rounds");
  }
  if (!context.absent.empty()) {
    report.tokens = std::llround(static_cast<double>(report.tokens) * context.trained_share);
    report.tokens_per_s *= context.trained_share;
    report.bytes_per_token /= context.trained_share;
    report.notes.push_back("the run went on without " + context.absent +
                           ", whose sequences nobody trained on; the tokens are those of the other sites");
  }
  report.notes.push_back(note_on_links(context));
  return report;
}

}  // namespace fomoe::trainer
