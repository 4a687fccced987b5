#include "experiments/cli/execute.hpp"

#include <fmt/format.h>

#include <limits>

#include "costmodel/formula/closed_form.hpp"
#include "experiments/cli/options.hpp"
#include "experiments/cli/progress.hpp"
#include "experiments/cli/waiting_cause.hpp"
#include "experiments/text/human.hpp"
#include "experiments/text/suggest.hpp"
#include "platforms/support/children.hpp"
#include "platforms/support/input_error.hpp"
#include "platforms/support/parse_number.hpp"

namespace fomoe::commands {

namespace po = boost::program_options;

void add_engine_options(po::options_description& options) {
  options.add_options()(
      "engine", po::value<std::string>()->default_value("simulated")->value_name("NAME"),
      "simulated: simulates every flow on shared links; closed-form: a formula that is exact for most "
      "methods if sites are equal and hosts ideal (network_model.host=ideal); its report says where it is an "
      "approximation")(
      "rounds", po::value<std::string>()->value_name("N|all"),
      "number of rounds to execute of each kind of round; the other rounds are estimated from them (default: "
      "3 if rounds are identical, 8 if these overlap; if rounds differ, all of them where that takes about a "
      "second, or a tenth of it where they differ only by slow start, otherwise a sample)")(
      "no-bundle",
      "simulate the flows of each group of expert owners separately, which is slower (default: flows between "
      "the same two sites are merged)");
}

namespace {

/// Says that a simulation will take long, and what is faster; once in a run of the program.
void announce(const sim::SimulationSize& size) {
  constexpr double kLong_s = 5;
  static bool said = false;
  if (said || size.seconds < kLong_s) return;
  said = true;
  message(
      fmt::format("simulating about {} flows, up to {} at a time; this can take {}, more with sensitivities. "
                  "Faster: --engine closed-form, --sensitivity none, --rounds 1, fewer sites or larger "
                  "buckets; a ring has fewer flows at a time than a direct exchange.",
                  human_count(size.flows), human_count(size.at_once), human_time(size.seconds)));
}

}  // namespace

Engine read_engine(const po::variables_map& values) {
  Engine engine;
  engine.simulated =
      choice("--engine", values["engine"].as<std::string>(), {"simulated", "closed-form"}) == "simulated";
  engine.options.bundle = values.count("no-bundle") == 0;
  engine.options.on_size = announce;
  if (values.count("rounds")) {
    const std::string text = values["rounds"].as<std::string>();
    const auto rounds = parse_number<std::int64_t>(text);
    if (text == "all") {
      engine.options.all_rounds = true;
    } else if (!rounds || *rounds < 1) {
      throw UsageError(fmt::format(
          "--rounds: got \"{}\"; expected a whole number of at least 1, or all; for example --rounds 8",
          text));
    } else {
      engine.options.rounds = *rounds;
    }
    if (!engine.simulated) message("--rounds has no effect: the closed form covers every round");
  }
  return engine;
}

sim::SimulatedRun execute(const costmodel::Scenario& scenario, const Engine& engine) {
  sim::SimulatedRun run;
  if (engine.simulated) {
    run = sim::simulate_scenario(scenario, engine.options);
  } else {
    run.report = costmodel::closed_form(scenario);
  }
  run.report.bottleneck.waits_for = waiting_cause(scenario, run.report);
  return run;
}

std::vector<costmodel::Speed> simulate_all(const std::vector<costmodel::Scenario>& scenarios,
                                           sim::RunOptions options) {
  Progress progress(scenarios.size());
  options.on_progress = {};  // the simulations run at the same time
  options.on_size = {};      // each in a process of its own, which would repeat what another one has said
  const auto speed_of = [&](std::size_t i) {
    constexpr double kRefused = std::numeric_limits<double>::quiet_NaN();
    try {
      const costmodel::RunReport report = sim::simulate_scenario(scenarios[i], options).report;
      return costmodel::Speed{report.wall_clock_s, report.compute_utilization};
    } catch (const InputError&) {
      return costmodel::Speed{kRefused, kRefused};
    }
  };
  return in_children<costmodel::Speed>(scenarios.size(), speed_of,
                                       [&](std::size_t done) { progress.at(done); });
}

std::string left_out(const costmodel::Scenario& scenario, bool simulated, bool failures) {
  std::vector<std::string> parts;
  if (!simulated && !scenario.platform.changes.empty())
    parts.emplace_back("link rates that change over time (platform.trace)");
  if (!simulated && scenario.strategy.quorum)
    parts.emplace_back("rounds that go on without slow sites (strategy.quorum)");
  if (!simulated && scenario.failures && !scenario.failures->outages.empty())
    parts.emplace_back("outages at given times (failures.outages)");
  if (!failures && scenario.failures && scenario.failures->at_random())
    parts.emplace_back("failures of sites and links ([failures])");
  return scenario::joined(parts, " and ");
}

std::string waiting_text(const costmodel::RunReport& report) {
  const costmodel::Bottleneck& bottleneck = report.bottleneck;
  const double waiting = report.round.exposed_communication_s / report.round.duration_s;
  std::string text = fmt::format("waits for the network {} of the time", human_percent(waiting));
  constexpr double kLeastIdle = 0.05;  // a share of the time that is worth a word
  const double for_others = report.round.idle_s / report.round.duration_s;
  const std::string idle =
      for_others < kLeastIdle ? "" : fmt::format(", and for other sites {}", human_percent(for_others));
  if (waiting < kLeastWaiting) return text + idle;
  std::string cause = bottleneck.waits_for;
  if (cause == "connections") cause = "the rates of single connections";
  if (cause == "payload_rate") cause = "hosts that copy payloads (network_model.payload_rate)";
  if (cause == "call_overhead") cause = "the overhead of calls (network_model.call_overhead)";
  if (!cause.empty()) text += ", mostly for " + cause;
  return text +
         fmt::format(" (the busiest link, {}, is {} busy)", bottleneck.link,
                     human_percent(bottleneck.link_busy_share)) +
         idle;
}

std::string perplexity_text(const costmodel::RunReport& report) {
  if (!report.quality) return "";
  const costmodel::Quality& quality = *report.quality;
  if (quality.published) return "";  // loss_text() has what is known
  if (!quality.known) return "unknown";
  return quality.plus_minus ? fmt::format("{:.2f} ± {:.2f}", quality.perplexity, *quality.plus_minus)
                            : fmt::format("{:.2f}", quality.perplexity);
}

std::string money_text(const costmodel::RunReport& report) {
  if (!report.cost || report.cost->currency.empty()) return "";
  return human_money(report.cost->cost_total, report.cost->currency);
}

}  // namespace fomoe::commands
