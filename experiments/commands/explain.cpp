#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "costmodel/compute/compute_times.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/formula/links/owner_rings.hpp"
#include "costmodel/formula/links/region_links.hpp"
#include "costmodel/model/flops.hpp"
#include "costmodel/model/summary_inputs.hpp"
#include "costmodel/plan/method.hpp"
#include "costmodel/plan/site_shares.hpp"
#include "experiments/cli/answer.hpp"
#include "experiments/cli/command.hpp"
#include "experiments/cli/execute.hpp"
#include "experiments/cli/options.hpp"
#include "experiments/cli/progress.hpp"
#include "experiments/commands/explain_site.hpp"
#include "experiments/text/human.hpp"

namespace fomoe::commands {

namespace po = boost::program_options;

namespace {

using costmodel::Scenario;

std::string model_lines(const Scenario& scenario) {
  const costmodel::ParameterCounts counts = costmodel::count_parameters(scenario.model);
  const auto number = [](std::int64_t count) { return whole(static_cast<double>(count)); };
  std::string text = text_of({"parameters", "embedding + attention + dense FFN + router + experts + norms",
                              fmt::format("{} + {} + {} + {} + {} + {}", number(counts.embedding),
                                          number(counts.attention), number(counts.dense_ffn),
                                          number(counts.router), number(counts.expert), number(counts.norm)),
                              number(counts.total())});
  const costmodel::Fixed fixed = costmodel::fixed_of(scenario);
  const double bytes = scenario.strategy.wire.bytes_per_element();
  text += text_of({"payload of the dense part", "elements · bytes per element on the wire",
                   fmt::format("{} · {:.6g} ({})", whole(fixed.dense_elements), bytes,
                               to_string(scenario.strategy.wire.type)),
                   human_bytes(fixed.dense_elements * bytes)});
  if (fixed.expert_elements > 0)
    text += text_of({"payload of all experts", "elements · bytes per element on the wire",
                     fmt::format("{} · {:.6g}", whole(fixed.expert_elements), bytes),
                     human_bytes(fixed.expert_elements * bytes)});
  return text;
}

/// Bytes that a node sends to average one byte among `nodes` ("M", "O_e").
std::string averaging_text(const costmodel::Fixed& fixed, const char* nodes) {
  if (fixed.collective == costmodel::Collective::store) return "1, to the store";
  return fixed.sparse_payloads ? fmt::format("{} − 1", nodes) : fmt::format("2({0} − 1)/{0}", nodes);
}

/// How the experts are dealt out if the sites do not get equally many.
std::string unequal_experts(const Scenario& scenario) {
  const costmodel::ExpertShares shares = costmodel::expert_shares(scenario);
  if (shares.fewest_of_layer() == shares.most_of_layer()) return "";
  std::string text = fmt::format(", {} or {} of the {} of each layer", shares.fewest_of_layer(),
                                 shares.most_of_layer(), shares.experts);
  if (shares.differ()) text += fmt::format("; the site with most, {:.4g}, decides", shares.held(0));
  return text;
}

std::string traffic_lines(const Scenario& scenario, const costmodel::Resolved& resolved) {
  const costmodel::Fixed fixed = costmodel::fixed_of(scenario);
  const auto sites = static_cast<double>(scenario.sites());
  const auto overlap = static_cast<double>(costmodel::effective_overlap(scenario));
  std::string text =
      fmt::format("  {}: {}\n", scenario.strategy.method->name, scenario.strategy.method->summary);
  text += text_of({"averaging among M sites", "bytes sent for one byte of payload",
                   fmt::format("{}, M = {:.0f}", averaging_text(fixed, "M"), sites),
                   fmt::format("{:.6g}", costmodel::averaging_factor(fixed, sites))});
  if (overlap < sites)
    text += text_of(
        {"averaging among O_e owners", "bytes sent for one byte of payload",
         fmt::format("{}, O_e = {:.0f}; a site holds O_e/M = {:.4g} of the experts{}",
                     averaging_text(fixed, "O_e"), overlap, overlap / sites, unequal_experts(scenario)),
         fmt::format("{:.6g}", costmodel::averaging_factor(fixed, overlap))});
  const costmodel::SentBytes& sent = resolved.plan.sent;
  std::string names, numbers;
  for (const auto& [name, bytes] : {std::pair<const char*, double>{"dense", sent.dense},
                                    {"experts", sent.expert_sync},
                                    {"migration", sent.migration},
                                    {"activations", sent.activations},
                                    {"data", sent.data},
                                    {"checkpoints", sent.checkpoint},
                                    {"returning sites", sent.rejoin}}) {
    if (bytes == 0) continue;
    names += fmt::format("{}{}", names.empty() ? "" : " + ", name);
    numbers += fmt::format("{}{}", numbers.empty() ? "" : " + ", human_bytes(bytes));
  }
  return text + text_of({"bytes sent by a site in the mean round", names.empty() ? "nothing" : names, numbers,
                         human_bytes(sent.total())});
}

std::string compute_lines(const Scenario& scenario, const costmodel::Resolved& resolved) {
  const costmodel::ComputeTimes step = costmodel::slowest_times(scenario, resolved);
  std::string text = text_of({"a step of the slowest site", "forward and backward + optimiser",
                              fmt::format("{} + {}", seconds(step.gradients_s), seconds(step.optimizer_s)),
                              seconds(step.step_s())});
  if (resolved.own_pace) return text;
  const double steps = resolved.plan.steps / resolved.plan.rounds;
  return text + text_of({"compute of the mean round",
                         "steps per round · (share computed · forward and backward + share updated · "
                         "optimiser) + outer step",
                         fmt::format("{:.6g} · ({:.6g} · {} + {:.6g} · {}) + {}", steps,
                                     resolved.plan.compute_factor, seconds(step.gradients_s),
                                     resolved.plan.optimizer_factor, seconds(step.optimizer_s),
                                     seconds(resolved.plan.outer_steps_per_round * step.outer_step_s)),
                         seconds(resolved.times.round.slowest_compute_s)});
}

/// The links of the stage over which it takes longest.
costmodel::Links deciding_links(const costmodel::Stage& stage, const costmodel::LinkSets& sets) {
  if (stage.between != costmodel::Between::ring || sets.ring.empty()) return sets.all;
  return *std::max_element(sets.ring.begin(), sets.ring.end(), [&](const auto& a, const auto& b) {
    return costmodel::stage_s(stage, a) < costmodel::stage_s(stage, b);
  });
}

std::string hop_text(const Scenario& scenario, const costmodel::Links& links) {
  if (links.from < 0) return "";
  const auto& sites = scenario.platform.sites;
  return fmt::format(", over its slowest links, from {} to {}",
                     sites[static_cast<std::size_t>(links.from)].name,
                     sites[static_cast<std::size_t>(links.to)].name);
}

std::string store_text(const costmodel::Stage& stage) {
  std::string text;
  for (const costmodel::StoreObjects& of : stage.objects) {
    if (of.count == 0) continue;
    text += fmt::format("{}{:.4g} objects of {} up, {} down", text.empty() ? "" : "; ", of.count,
                        human_bytes(of.bytes), human_bytes(of.downloaded()));
  }
  return text;
}

/// "1.2 s among a, b + 3.4 s among a, c"
std::string parts_text(const Scenario& scenario, const costmodel::Stage& stage,
                       const costmodel::LinkSets& sets) {
  std::string text;
  for (const costmodel::StagePart& part : parts_of(stage, sets)) {
    const costmodel::SiteGroup& longest =
        *std::max_element(part.groups->begin(), part.groups->end(), [&](const auto& a, const auto& b) {
          return costmodel::stage_s(part.stage, a.links) < costmodel::stage_s(part.stage, b.links);
        });
    std::string names;
    for (const int site : longest.sites)
      names += (names.empty() ? "" : ", ") + scenario.platform.sites[static_cast<std::size_t>(site)].name;
    text += fmt::format("{}{} among {}", text.empty() ? "" : " + ",
                        seconds(costmodel::stage_s(part.stage, longest.links)), names);
  }
  return text;
}

std::string stage_lines(const Scenario& scenario, const costmodel::Resolved& resolved) {
  std::string text;
  const auto rate = [](double bytes_per_s) {
    return std::isinf(bytes_per_s) ? std::string("unlimited")
                                   : fmt::format("{:.6g} Gbit/s", bytes_per_s * 8 / 1e9);
  };
  for (std::size_t i = 0; i < resolved.plan.stages.size(); ++i) {
    const costmodel::Stage& stage = resolved.plan.stages[i];
    if (stage.times_per_round == 0 || resolved.own_pace) continue;
    const std::string name =
        stage.part_of_previous ? "part of the transfer above" : fmt::format("transfer {}", i + 1);
    const std::string times =
        stage.times_per_round == 1 ? "" : fmt::format(", {:.6g} times per round", stage.times_per_round);
    const costmodel::Links links = deciding_links(stage, resolved.links.sets);
    const double in_share = 1 - stage.out_share;
    const costmodel::RingSteps alone =
        stage.beside.bytes > 0 ? costmodel::ring_steps(stage, resolved.links.sets) : costmodel::RingSteps{};
    const bool by_ports =
        stage.between == costmodel::Between::pairs || stage.between == costmodel::Between::first_site;
    if (stage.between == costmodel::Between::store)
      text +=
          text_of({name + times,
                   "latencies to the store and back + uploads ÷ uplink + downloads ÷ downlink, at the site "
                   "where they take longest together",
                   store_text(stage), seconds(costmodel::stage_s(stage, resolved.links.sets))});
    else if (stage.among != costmodel::Among::all_sites && resolved.links.sets.regions != nullptr)
      text += text_of({name + times, "Σ over its parts, each over the group of sites where it takes longest",
                       parts_text(scenario, stage, resolved.links.sets),
                       seconds(costmodel::stage_s(stage, resolved.links.sets))});
    else if (by_ports && resolved.links.sets.sites != nullptr)
      text += text_of({name + times, "steps · time until every port and path has passed on its flows",
                       fmt::format("{:.6g} steps, {} to each peer in all", stage.latency_hops,
                                   human_bytes(stage.pair_bytes)),
                       seconds(costmodel::stage_s(stage, resolved.links.sets))});
    else if (stage.star)
      text += text_of(
          {name + times,
           "hops · latency + Σ over both directions of max(bytes ÷ first site's port, bytes of a pair ÷ "
           "other port or path)",
           fmt::format("{:.6g} · {} + max({} ÷ {}, {} ÷ min({}, {})) + max({} ÷ {}, {} ÷ min({}, {}))",
                       stage.latency_hops, seconds(links.latency_s), human_bytes(in_share * stage.bytes),
                       rate(links.downlink_bytes_per_s), human_bytes(in_share * stage.pair_bytes),
                       rate(links.uplink_bytes_per_s), rate(links.path_bytes_per_s),
                       human_bytes(stage.out_share * stage.bytes), rate(links.uplink_bytes_per_s),
                       human_bytes(stage.out_share * stage.pair_bytes), rate(links.downlink_bytes_per_s),
                       rate(links.path_bytes_per_s)),
           seconds(costmodel::stage_s(stage, links))});
    else if (stage.beside.bytes > 0 && links.latency_s > 0)
      text += text_of(
          {name + times,
           "two chains of steps that share the port, flow by flow; while one waits for a latency, the other "
           "sends",
           fmt::format(
               "{:.6g} steps of {} in a flow, each {} alone, and {:.6g} of {} in {:.3g} flows, each {} "
               "alone; {}",
               stage.latency_hops, human_bytes((stage.bytes - stage.beside.bytes) / stage.latency_hops),
               seconds(alone.of_all), stage.beside.hops, human_bytes(stage.beside.bytes / stage.beside.hops),
               stage.beside.flows, seconds(alone.of_owners), rate(links.port_bytes_per_s())),
           seconds(costmodel::stage_s(stage, resolved.links.sets))});
    else
      text += text_of(
          {name + times + hop_text(scenario, links),
           "hops · latency + max(bytes ÷ port, bytes of a pair ÷ path)",
           fmt::format("{:.6g} · {} + max({} ÷ {}, {} ÷ {})", stage.latency_hops, seconds(links.latency_s),
                       human_bytes(stage.bytes), rate(links.port_bytes_per_s()),
                       human_bytes(stage.pair_bytes), rate(links.path_bytes_per_s)),
           seconds(costmodel::stage_s(stage, links))});
    const bool over_all_links = stage.between == costmodel::Between::store ||
                                stage.between == costmodel::Between::owners ||
                                (stage.among != costmodel::Among::all_sites && resolved.links.sets.regions) ||
                                (by_ports && resolved.links.sets.sites);  // the lines above, that is
    const double over_own_links_s = costmodel::stage_s(stage, links),
                 over_all_links_s = costmodel::stage_s(stage, resolved.links.sets);
    if (!over_all_links && over_all_links_s > over_own_links_s * (1 + 1e-9))
      text += text_of({name + " over links that several paths share",
                       "latencies + time until the busiest shared link has passed on the bytes of all sites",
                       fmt::format("instead of {} over its own links", seconds(over_own_links_s)),
                       seconds(over_all_links_s)});
    if (const auto& all = resolved.times.round.stages[i]; all.windows_s > 0)
      text += text_of({name + " with the windows of its connections, mean over the run",
                       "links as above + round trips for windows that are smaller than what fits on the way",
                       fmt::format("{} + {}", seconds(all.seconds - all.windows_s), seconds(all.windows_s)),
                       seconds(all.seconds)});
    if (stage.hidden_steps > 0 || stage.hidden_forwards > 0 || stage.hidden_backwards > 0)
      text += fmt::format(
          "      overlaps with at most {:.4g} steps, {:.4g} forward passes and {:.4g} backward passes of "
          "compute\n",
          stage.hidden_steps, stage.hidden_forwards, stage.hidden_backwards);
    if (stage.hidden_hops > 0)
      text += fmt::format("      overlaps with {:.4g} one-way latencies of the next transfers\n",
                          stage.hidden_hops);
  }
  for (const std::string& sentence : costmodel::approximations(scenario, resolved))
    text += fmt::format("  note: {}\n", sentence);
  if (!costmodel::represents_sites(scenario, resolved))
    text += fmt::format("  note: the slowest port is the {}\n",
                        costmodel::slowest_port(effective_platform(scenario.platform, scenario.network)));
  return text;
}

/// The sites' cycles if none of them waits for another one, and the wall clock that follows.
std::string own_pace_lines(const Scenario& scenario, const costmodel::Resolved& resolved) {
  std::string text;
  for (int site = 0; site < scenario.sites(); ++site) {
    const costmodel::Pace& pace = resolved.own_pace->sites[static_cast<std::size_t>(site)];
    if (pace.local_steps == 0) continue;
    const std::string sum = fmt::format("{} + {} + {} + {}", seconds(pace.steps_s), seconds(pace.up_s),
                                        seconds(pace.applied_s), seconds(pace.down_s));
    const std::int64_t fragments = resolved.own_pace->fragments;
    text += text_of(
        {"cycle of " + scenario.platform.sites[static_cast<std::size_t>(site)].name,
         fragments > 1 ? "longest of local steps, upload, download and (local steps + upload + outer step + "
                         "download) ÷ fragments, over what the others leave of the links"
                       : "local steps + upload + outer step + download, over what the others leave of the "
                         "links",
         fragments > 1 ? fmt::format("max({}, {}, {}, ({}) ÷ {})", seconds(pace.steps_s), seconds(pace.up_s),
                                     seconds(pace.down_s), sum, fragments)
                       : sum,
         fmt::format("{}, {:.6g} times", seconds(pace.cycle_s), pace.cycles_of_run)});
  }
  const double run_s = resolved.own_pace->run_s;
  return text + text_of({"wall clock", "sequences ÷ Σ over the sites of sequences of a cycle ÷ cycle",
                         fmt::format("{} sequences", whole(resolved.plan.steps *
                                                           resolved.counts.axes.global_batch_sequences)),
                         fmt::format("{:.10g} s ({})", run_s, human_time(run_s))});
}

std::string run_lines(const Scenario& scenario, const costmodel::Resolved& resolved) {
  if (resolved.own_pace) return own_pace_lines(scenario, resolved);
  const auto& round = resolved.times.round;
  std::string text =
      text_of({"exposed communication of the mean round", "transfer time that does not overlap with compute",
               fmt::format("part of {}", seconds(round.communication_s)), seconds(round.exposed_s)});
  text += text_of({"duration of the mean round", "compute + waiting inside steps + exposed communication",
                   fmt::format("{} + {} + {}", seconds(round.slowest_compute_s), seconds(round.waiting_s),
                               seconds(round.exposed_s)),
                   seconds(round.duration_s)});
  text += text_of({"optimiser steps", "⌈tokens ÷ (sequences per batch · tokens per sequence)⌉",
                   fmt::format("⌈{} ÷ ({} · {})⌉", whole(static_cast<double>(scenario.workload.tokens)),
                               whole(static_cast<double>(scenario.workload.global_batch_sequences)),
                               whole(static_cast<double>(scenario.model.sequence_length))),
                   whole(resolved.plan.steps)});
  return text + text_of({"wall clock", "rounds · duration of the mean round",
                         fmt::format("{:.0f} · {}", resolved.plan.rounds, seconds(round.duration_s)),
                         fmt::format("{:.10g} s ({})", resolved.plan.rounds * round.duration_s,
                                     human_time(resolved.plan.rounds * round.duration_s))});
}

}  // namespace

void run_explain(const Arguments& arguments) {
  po::options_description options("Options");
  add_scenario_options(options);
  const Help help = {
      "explain",
      "SCENARIO.toml [options]",
      "Prints the closed form with the scenario's numbers, line by line: parameters, bytes, FLOPs, "
      "seconds of\na step and on the links, the round, the whole run, memory and cost. If the links of the "
      "sites "
      "differ, the slowest hop decides; what the closed form only approximates is also simulated.",
      {"fomoe explain experiments/scenarios/two-sites.toml",
       "fomoe explain experiments/scenarios/two-sites.toml --set strategy.method=ddp"}};
  const auto values = parse(arguments, help, options, "scenario");
  if (!values) return;
  const Scenario scenario = read_scenario(*values);
  const costmodel::Resolved resolved = costmodel::resolve(scenario);
  std::string simulated;
  costmodel::RunReport report;
  if (costmodel::approximates(resolved)) {
    Engine engine;
    engine.options.on_progress = show_simulation();
    report = execute(scenario, engine).report;
    const double wall_clock_s = report.wall_clock_s;
    simulated = text_of({"wall clock by simulation", "every site and hop on its own", "",
                         fmt::format("{:.10g} s ({})", wall_clock_s, human_time(wall_clock_s))});
  } else {
    report = costmodel::closed_form(scenario);
  }
  const std::string bytes = model_lines(scenario) + traffic_lines(scenario, resolved);
  const std::string times =
      step_lines(scenario, resolved) + compute_lines(scenario, resolved) + stage_lines(scenario, resolved);
  fomoe::scenario::write_answer(fmt::format("Bytes\n{}\nMemory\n{}\nSeconds\n{}\nThe run\n{}{}{}", bytes,
                                            memory_lines(scenario), times, run_lines(scenario, resolved),
                                            simulated, cost_lines(scenario, report)));
}

}  // namespace fomoe::commands
