#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "costmodel/formula/closed_form.hpp"
#include "experiments/analysis/limits.hpp"
#include "experiments/cli/command.hpp"
#include "experiments/cli/execute.hpp"
#include "experiments/cli/options.hpp"
#include "experiments/cli/progress.hpp"
#include "experiments/files/published/published_quality.hpp"
#include "experiments/output/planner_text.hpp"
#include "experiments/planner/answer.hpp"
#include "platforms/support/parse_number.hpp"

namespace fomoe::commands {

namespace po = boost::program_options;

namespace {

std::size_t read_top(const std::string& text) {
  const auto top = parse_number<std::size_t>(text);
  if (!top || *top < 1 || *top > 30)
    throw UsageError(
        fmt::format("--top: got \"{}\"; expected a whole number from 1 to 30; for example --top 5", text));
  return *top;
}

/// Returns whether the sites or their links differ. Some closed forms then use the slowest link for all sites
/// and overestimate the time, so that a candidate that exceeds a limit may keep it in a simulation.
bool sites_differ(const platforms::Platform& platform) {
  const platforms::Path* first = nullptr;
  for (int i = 0; i < platform.size(); ++i) {
    const platforms::Site& site = platform.sites[static_cast<std::size_t>(i)];
    const platforms::Site& other = platform.sites.front();
    if (site.uplink_bytes_per_s != other.uplink_bytes_per_s ||
        site.downlink_bytes_per_s != other.downlink_bytes_per_s ||
        site.compute_factor != other.compute_factor)
      return true;
    for (int j = 0; j < platform.size(); ++j) {
      if (i == j) continue;
      const platforms::Path& path = platform.path(i, j);
      if (first == nullptr) first = &path;
      if (path.latency_s != first->latency_s || path.bandwidth_bytes_per_s != first->bandwidth_bytes_per_s)
        return true;
    }
  }
  return false;
}

/// The quality model of a plan whose scenario has none.
constexpr const char* kDefaultQuality = "quality.model=published";

double read_slack(const std::string& text) {
  try {
    const double slack = scenario::parse_percentage(text);
    if (slack >= 0 && slack <= 1) return slack;
  } catch (const std::exception&) {
    // the message below is the same for all wrong texts
  }
  throw UsageError(
      fmt::format("--slack: got \"{}\"; expected a share from 0% to 100%; for example --slack 5%", text));
}

planner::Question read_question(const po::variables_map& values) {
  planner::Question question;
  question.scenario_path = values["scenario"].as<std::vector<std::string>>().front();
  question.overrides = overrides_of(values);
  if (values.count("vary")) {
    for (const std::string& text : values["vary"].as<std::vector<std::string>>())
      question.vary.push_back(sweep::parse_axis(text));
  }
  (void)sweep::Grid(question.vary);  // throws if a key is given twice
  return question;
}

/// Returns whether any candidate was excluded by a limit on time, cost or energy, so that a higher limit
/// would help.
bool breaks_a_limit(const planner::Screening& screened, const planner::Answer& answer) {
  const auto is_amount = [](const std::string& reason) { return reason.ends_with(" than the limit"); };
  return !screened.doubtful.empty() ||
         std::any_of(screened.dropped.begin(), screened.dropped.end(),
                     [&](const auto& dropped) { return is_amount(dropped.first); }) ||
         std::any_of(answer.finalists.begin() + 1, answer.finalists.end(),
                     [&](const planner::Finalist& one) { return is_amount(one.problem); });
}

/// Plans once more for each amount that has a limit. Each of these plans minimises the amount and keeps no
/// limit except that of GPU memory.
std::vector<Least> least_of_all(const costmodel::Scenario& base, const planner::Question& question,
                                const planner::Space& space, const planner::Finalist& own,
                                const planner::AnswerOptions& answering) {
  const planner::Limits& limits = answering.screening.limits;
  std::vector<Least> found;
  for (const auto& [measure, limited] : {std::pair{planner::Measure::time, limits.time_s.has_value()},
                                         {planner::Measure::cost, limits.cost.has_value()},
                                         {planner::Measure::energy, limits.energy_kwh.has_value()}}) {
    if (!limited) continue;
    planner::AnswerOptions free = answering;
    free.top = 1;
    free.screening.minimise = measure;
    free.screening.limits = {};
    free.screening.limits.gpu_memory_bytes = limits.gpu_memory_bytes;
    const auto silent = [](std::uint64_t, std::uint64_t) {};
    const planner::Screening screened =
        planner::screen(base, question, space, free.screening, [](std::uint64_t) {});
    const planner::Answer answer = planner::answer(question, space, screened, own, free, silent);
    const planner::Finalist* least = nullptr;
    for (std::size_t i = 1; i < answer.finalists.size(); ++i) {
      const planner::Finalist& one = answer.finalists[i];
      if (one.problem.empty() &&
          (least == nullptr || one.simulated.of(measure) < least->simulated.of(measure)))
        least = &one;
    }
    if (least != nullptr) found.push_back({measure, *least});
  }
  return found;
}

}  // namespace

void run_plan(const Arguments& arguments) {
  po::options_description options("Options");
  options.add_options()("minimise", po::value<std::string>()->default_value("time")->value_name("WHAT"),
                        "the amount to minimise: time, cost or energy")(
      "within", po::value<std::string>()->default_value("")->value_name("LIMITS"),
      "upper limits, any of time=3d,cost=5000,energy=800kWh,perplexity=30,memory=80GiB; memory is the limit "
      "of one GPU (default: the scenario's gpu_memory)")(
      "top", po::value<std::string>()->default_value("10")->value_name("N"),
      "largest number of rows in the answer")(
      "slack", po::value<std::string>()->default_value("5%")->value_name("SHARE"),
      "without a quality model, what the recommended row may take above the least with at least 20 rounds")(
      "vary", po::value<std::vector<std::string>>()->value_name("KEY=VALUES"),
      "values to try for a key, in the form of `fomoe sweep`; they replace the default values of the key, or "
      "add a key")("output", po::value<std::string>()->default_value("")->value_name("-|FILE"),
                   "-: JSON on stdout; or a .json or .csv file (default: text on stdout)");
  add_scenario_options(options);
  const Help help = {
      "plan",
      "SCENARIO.toml [options]",
      "Recommends a method, K, O_e, placement, collective, number format and sites. The closed form ranks "
      "all\ncombinations, and the best ones are simulated. If the scenario has no [quality], published runs "
      "say "
      "what\nthe settings cost in loss (quality.model = \"published\"), and the covered combinations are "
      "ranked "
      "by the\ntime or cost to equal loss. If they cover nothing, there is no single best\ncombination, "
      "since fewer synchronisations can reduce quality. The answer is then a frontier: "
      "the best\ncombination for each level of risk to quality. Its first row takes the least risk among "
      "those within --slack\nof the least time (or cost, or energy) with at least 20 rounds.",
      {"fomoe plan experiments/scenarios/two-sites.toml",
       "fomoe plan experiments/scenarios/two-sites.toml --vary strategy.method=diloco,fomoe --vary "
       "strategy.local_steps=8..512*2 --top 5",
       "fomoe plan experiments/scenarios/eight-regions.toml --set compute.peak_flops=100TFLOPS --set "
       "compute.mfu=0.3 --set prices.file=../data/prices-example.toml --minimise cost --within time=2h"}};
  const auto values = parse(arguments, help, options, "scenario");
  if (!values) return;

  const Output output("--output", (*values)["output"].as<std::string>(), {".json", ".csv"});
  planner::AnswerOptions answering;
  answering.top = read_top((*values)["top"].as<std::string>());
  answering.slack = read_slack((*values)["slack"].as<std::string>());
  planner::Question question = read_question(*values);
  costmodel::Scenario base = read_scenario(*values);
  planner::ScreeningOptions& screening = answering.screening;
  screening.minimise = read_measure((*values)["minimise"].as<std::string>(), base);
  screening.limits = read_limits((*values)["within"].as<std::string>(), base);
  screening.sites_differ = sites_differ(base.platform);
  if (base.prices) {
    for (const costmodel::SitePrices& site : base.prices->sites)
      screening.ports_per_month += site.port_price_per_month / static_cast<double>(base.prices->sites.size());
  }

  // Without a quality model, published runs say what they can.
  const bool by_default = !base.quality.has_value();
  if (by_default) {
    base.quality = costmodel::PublishedQuality{scenario::published_losses(), false};
    question.overrides.emplace_back(kDefaultQuality);
  }
  // Tables and laws hold for the scenario's format alone; published runs have formats of their own.
  if (!std::holds_alternative<costmodel::PublishedQuality>(*base.quality))
    screening.known_bytes_per_element = base.strategy.wire.bytes_per_element();
  planner::Finalist own = planner::base_line(base, answering);
  screening.target_perplexity = screening.limits.perplexity;
  if (!screening.target_perplexity) screening.target_perplexity = own.perplexity;
  const planner::Space space = planner::candidate_space(base, question);
  if (space.names_sites)
    std::erase_if(question.overrides,
                  [](const std::string& text) { return text.starts_with("platform.sites="); });
  planner::Screening screened;
  {
    Progress progress(static_cast<std::uint64_t>(space.candidates()));
    screened =
        planner::screen(base, question, space, screening, [&](std::uint64_t done) { progress.at(done); });
  }
  if (by_default && screened.in_range == 0) {
    // They cover no candidate but data-parallel training: the plan does without them.
    answering.why_not_published = ", and published runs, which plan asks then, cover no configuration" +
                                  (own.quality_reason.empty() || own.equal_loss_range
                                       ? ""
                                       : "; the unchanged scenario has " + own.quality_reason);
    base.quality.reset();
    question.overrides.pop_back();
    own.scenario.quality.reset();
    own.published.reset();
    own.equal_loss_factor.reset();
    own.equal_loss_range.reset();
    own.value = own.simulated.of(screening.minimise);
  }
  planner::Answer answer;
  {
    Progress progress(100);
    answer = planner::answer(question, space, screened, std::move(own), answering,
                             [&](std::uint64_t done, std::uint64_t all) { progress.at(done * 100 / all); });
  }
  PlannerAnswer shown{question, space, screened, answer, answering};
  if (answer.chosen.empty() && breaks_a_limit(screened, answer))
    shown.least = least_of_all(base, question, space, answer.finalists.front(), answering);
  output.write(output.for_people() ? planner_text(shown)
               : output.csv()      ? planner_csv(shown)
                                   : planner_json(shown));
  if (answer.chosen.empty())
    throw LimitsNotMet((*values)["within"].as<std::string>().empty()
                           ? "no configuration is possible"
                           : "no configuration meets the limits of --within");
}

}  // namespace fomoe::commands
