#include "experiments/planner/answer.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <numeric>
#include <set>

#include "costmodel/counts/memory.hpp"
#include "costmodel/formula/closed_form.hpp"
#include "costmodel/model/flops.hpp"
#include "costmodel/plan/site_shares.hpp"
#include "experiments/planner/decision.hpp"
#include "experiments/planner/rules.hpp"
#include "experiments/planner/simulated_finalist.hpp"
#include "experiments/scenario/scenario_reader.hpp"

namespace fomoe::planner {

namespace {

using costmodel::Scenario;

constexpr std::size_t kMostFinalists = 96, kMostDoubtful = 4;

/// Picks at most `count` entries at even distances in the list, including the first and the last. Neighbours
/// on a frontier are similar, so the entries left out matter little.
std::vector<Candidate> thinned(const std::vector<Candidate>& list, std::size_t count) {
  if (list.size() <= count) return list;
  if (count == 1) return {list.front()};
  std::vector<Candidate> kept;
  for (std::size_t i = 0; i < count; ++i) kept.push_back(list[i * (list.size() - 1) / (count - 1)]);
  return kept;
}

class Chooser {
 public:
  Chooser(const Question& question, const Space& space) : question_(question), space_(space) {}

  void add(const std::vector<Candidate>& candidates) {
    for (const Candidate& candidate : candidates) add(candidate);
  }
  void add(const Candidate& candidate) {
    if (!seen_.insert({candidate.family, candidate.row}).second || finalists_.size() >= kMostFinalists)
      return;
    Finalist finalist;
    finalist.candidate = candidate;
    const Family& family = space_.families[candidate.family];
    finalist.settings = family.overrides;
    for (std::string& assignment : family.grid.assignments(candidate.row))
      finalist.settings.push_back(std::move(assignment));
    scenario::ReadOptions reading;
    reading.overrides = question_.overrides;
    reading.overrides.insert(reading.overrides.end(), finalist.settings.begin(), finalist.settings.end());
    try {
      finalist.scenario = scenario::read_scenario(question_.scenario_path, reading);
    } catch (const FileError&) {
      return;  // the combination may be impossible with another collective
    }
    finalists_.push_back(std::move(finalist));
  }

  /// For some methods the closed form uses the slowest link for all sites, and the resulting error differs
  /// between collectives. Therefore, if sites differ, each candidate is simulated with all collectives.
  void add_collectives() {
    const std::size_t count = finalists_.size();
    for (std::size_t i = 0; i < count; ++i) {
      const Candidate one = finalists_[i].candidate;
      const sweep::Grid& grid = space_.families[one.family].grid;
      for (std::size_t a = 0; a < grid.axes().size(); ++a) {
        if (grid.axes()[a].key != "strategy.collective") continue;
        for (std::size_t digit = 0; digit < grid.axes()[a].size(); ++digit) {
          Candidate sibling = one;
          sibling.row = grid.with_digit(one.row, a, digit);
          add(sibling);
        }
      }
    }
  }

  std::vector<Finalist> finalists() && { return std::move(finalists_); }

 private:
  const Question& question_;
  const Space& space_;
  std::vector<Finalist> finalists_;
  std::set<std::pair<std::uint32_t, std::uint64_t>> seen_;
};

std::string broken_limit(const Finalist& finalist, const ScreeningOptions& options) {
  const double unknown = std::numeric_limits<double>::quiet_NaN();
  for (const std::string& broken :
       {broken_memory(finalist.gpu_memory.needed, finalist.gpu_memory.available, options.limits),
        broken_amount(finalist.simulated, options.limits),
        broken_perplexity(finalist.perplexity.value_or(unknown), options.limits)}) {
    if (!broken.empty()) return broken;
  }
  return "";
}

/// Simulates these finalists, several at a time, and checks the limits.
void simulate(std::vector<Finalist>& finalists, const std::vector<std::size_t>& which,
              const sim::RunOptions& simulation, const ScreeningOptions& screening,
              const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  const auto cores = static_cast<std::size_t>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  std::deque<std::pair<std::size_t, FinalistSimulation>> running;
  std::size_t done = 0;
  const auto collect = [&] {
    running.front().second.finish(finalists[running.front().first], screening);
    running.pop_front();
    progress(++done, which.size());
  };
  for (const std::size_t i : which) {
    if (running.size() == cores) collect();
    running.emplace_back(i, FinalistSimulation(finalists[i].scenario, simulation));
  }
  while (!running.empty()) collect();
  for (const std::size_t i : which) {
    if (finalists[i].problem.empty()) finalists[i].problem = broken_limit(finalists[i], screening);
  }
}

/// Decides, simulates the rows of the answer as `fomoe simulate` does, and decides again: what a row says is
/// what its command gives. Other rows may come up meanwhile.
void decide_by_whole_simulations(Answer& answer, const AnswerOptions& options,
                                 const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  std::set<std::size_t> whole;
  Answer decided;
  for (;;) {  // each time simulates a finalist that was not, or ends
    decided = answer;
    decide(decided, options);
    std::vector<std::size_t> again;
    if (whole.insert(0).second) again.push_back(0);  // the unchanged scenario is a row as well
    for (const std::size_t i : decided.chosen)
      if (whole.insert(i).second) again.push_back(i);
    if (again.empty()) break;
    simulate(answer.finalists, again, {}, options.screening, progress);
  }
  answer = std::move(decided);
}

}  // namespace

std::int64_t Finalist::steps_per_round() const {
  return planner::steps_per_round(*scenario.strategy.method, scenario.strategy.local_steps);
}

Amounts Finalist::at_equal_loss() const {
  return to_equal_loss(simulated, equal_loss_factor.value_or(std::numeric_limits<double>::quiet_NaN()));
}

std::int64_t Finalist::rounds() const {
  const std::int64_t steps = costmodel::optimizer_steps(scenario), each = steps_per_round();
  return (steps + each - 1) / each;
}

Finalist base_line(const Scenario& base, const AnswerOptions& options) {
  Finalist finalist;
  finalist.scenario = base;
  FinalistSimulation(base, options.simulation).finish(finalist, options.screening);
  if (!finalist.problem.empty())
    throw std::runtime_error("the scenario cannot be simulated: " + finalist.problem);
  finalist.problem = broken_limit(finalist, options.screening);
  return finalist;
}

Answer answer(const Question& question, const Space& space, const Screening& screening, Finalist base,
              const AnswerOptions& options,
              const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  Answer answer;
  answer.target_perplexity = options.screening.target_perplexity;
  const bool asked = base.scenario.quality.has_value();
  const bool published = asked && std::holds_alternative<costmodel::PublishedQuality>(*base.scenario.quality);
  const bool law = asked && !std::holds_alternative<costmodel::QualityTable>(*base.scenario.quality);
  if (asked && !screening.known.empty()) {
    answer.basis = published                  ? Basis::published
                   : law                      ? Basis::equal_loss
                   : answer.target_perplexity ? Basis::target
                                              : Basis::perplexity;
    if (answer.basis == Basis::perplexity)
      answer.why_unknown =
          "no target perplexity is given; with --within perplexity=…, the best configuration that reaches it "
          "is chosen";
  } else {
    answer.why_unknown = !asked ? "the scenario has no quality model ([quality])" + options.why_not_published
                                : "no candidate is inside the quality model's range: " + base.quality_reason;
  }
  const bool has_choice = answer.chooses();
  const Shortlist& list = answer.basis == Basis::unknown ? screening.any : screening.known;
  Chooser chooser(question, space);
  if (!has_choice) chooser.add(list.prudent(options.slack));
  chooser.add(has_choice ? list.best(options.top) : thinned(list.frontier(), options.top));
  chooser.add(list.of_methods(space));
  // What no published run covers follows after the rows.
  if (answer.basis == Basis::published) {
    chooser.add(thinned(screening.any.frontier(), options.top));
    chooser.add(screening.any.of_methods(space));
  }
  chooser.add(screening.doubtful.best(kMostDoubtful));
  if (options.screening.sites_differ) {
    chooser.add_collectives();
    answer.with_collectives = true;
  }
  answer.finalists = std::move(chooser).finalists();
  answer.simulated = answer.finalists.size();
  std::vector<std::size_t> all(answer.finalists.size());
  std::iota(all.begin(), all.end(), 0);
  simulate(answer.finalists, all, options.simulation, options.screening, progress);
  answer.finalists.insert(answer.finalists.begin(), std::move(base));
  decide_by_whole_simulations(answer, options, progress);
  return answer;
}

}  // namespace fomoe::planner
