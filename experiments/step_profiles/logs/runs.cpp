#include "experiments/step_profiles/logs/runs.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

namespace fomoe::step_profiles {
namespace {

constexpr auto kFacts = std::make_tuple(
    &StatedFacts::gpus, &StatedFacts::sequences_per_step, &StatedFacts::sequence_length,
    &StatedFacts::tokens_per_step, &StatedFacts::micro_batch_sequences, &StatedFacts::micro_batch_tokens,
    &StatedFacts::accumulation_steps, &StatedFacts::data_parallel, &StatedFacts::tensor_parallel,
    &StatedFacts::pipeline_parallel, &StatedFacts::context_parallel, &StatedFacts::expert_parallel,
    &StatedFacts::device_name, &StatedFacts::dtype, &StatedFacts::recomputation, &StatedFacts::parameters);

/// Calls `use` with each pair of facts of the same kind.
template <class A, class B, class Use>
void for_each_fact(A& a, B& b, Use use) {
  std::apply([&](auto... member) { (use(a.*member, b.*member), ...); }, kFacts);
}

/// Whether `known` states everything that `facts` states.
bool covers(const StatedFacts& known, const StatedFacts& facts) {
  bool all = true;
  for_each_fact(known, facts, [&](const auto& a, const auto& b) { all = all && (a || !b); });
  for (const auto& [rank, parameters] : facts.parameters_of_ranks)
    all = all && known.parameters_of_ranks.contains(rank);
  return all;
}

/// GPUs that a log states as the degrees of parallelism.
void multiply_degrees(StatedFacts& facts) {
  if (facts.gpus || !facts.data_parallel) return;
  facts.gpus = *facts.data_parallel * facts.tensor_parallel.value_or(1) *
               facts.pipeline_parallel.value_or(1) * facts.context_parallel.value_or(1);
}

}  // namespace

void merge(StatedFacts& to, const StatedFacts& from) {
  for_each_fact(to, from, [](auto& a, const auto& b) {
    if (b) a = b;
  });
  for (const auto& [rank, parameters] : from.parameters_of_ranks) to.parameters_of_ranks[rank] = parameters;
}

bool contradict(const StatedFacts& a, const StatedFacts& b) {
  bool differ = false;
  for_each_fact(a, b, [&](const auto& x, const auto& y) { differ = differ || (x && y && !(*x == *y)); });
  for (const auto& [rank, parameters] : b.parameters_of_ranks) {
    const auto found = a.parameters_of_ranks.find(rank);
    differ = differ || (found != a.parameters_of_ranks.end() && found->second != parameters);
  }
  return differ;
}

bool states_nothing(const StatedFacts& facts) { return covers(StatedFacts{}, facts); }

std::vector<double> consumed_by_steps(const std::vector<LoggedStep>& steps) {
  std::vector<double> amounts(steps.size(), 0);
  const auto whole = [](double amount) { return amount >= 1 && amount == std::floor(amount) ? amount : 0; };
  for (std::size_t i = 1; i < steps.size(); ++i) {
    const double passed = static_cast<double>(steps[i].number - steps[i - 1].number);
    if (steps[i].consumed > 0 && steps[i - 1].consumed > 0 && passed > 0)
      amounts[i] = whole((steps[i].consumed - steps[i - 1].consumed) / passed);
  }
  // Batches may have grown until the first step of the log: its mean is not its batch.
  if (steps.size() > 1) {
    amounts[0] = amounts[1];
  } else if (!steps.empty() && steps[0].number > 0) {
    amounts[0] = whole(steps[0].consumed / static_cast<double>(steps[0].number));
  }
  return amounts;
}

void StartFacts::add(const StatedFacts& facts) {
  if (contradict(all_, facts)) {
    // The second start begins with lines that repeat what the first one stated.
    std::size_t first = lines_.size();
    while (first > 0 && lines_[first - 1].again) --first;
    const std::vector<Line> since(lines_.begin() + static_cast<std::ptrdiff_t>(first), lines_.end());
    lines_.clear();
    all_ = {};
    for (const Line& line : since) {
      if (!contradict(line.facts, facts)) add(line.facts);
    }
  }
  lines_.push_back({facts, covers(all_, facts)});
  merge(all_, facts);
}

void Runs::add(std::int64_t line, const StatedFacts& facts) {
  if (states_nothing(facts)) return;
  if (start_.empty()) start_line_ = line;
  start_.add(facts);
}

void Runs::begin(const StatedFacts& facts) {
  runs_.emplace_back();
  runs_.back().stated = facts;
  ranks_repeat_ = false;
}

bool Runs::add(const LoggedStep& step) {
  const StatedFacts& facts = start_.all();
  if (runs_.empty()) {
    begin(facts);
  } else {
    const std::vector<LoggedStep>& before = runs_.back().steps;
    const bool falls = step.number > 0 && step.number <= before.back().number;
    if (!start_.empty()) {
      if (falls || contradict(runs_.back().stated, facts)) {
        begin(facts);
      } else {
        merge(runs_.back().stated, facts);
      }
    } else if (falls) {
      const bool same = step.number == before.back().number;
      // A rank may be a line late where several ranks log.
      const bool late = ranks_repeat_ && before.size() > 1 && step.number == before[before.size() - 2].number;
      ranks_repeat_ = ranks_repeat_ || same;
      if (same || late) return false;
      begin(StatedFacts(runs_.back().stated));  // nothing was stated anew
    }
  }
  Log& run = runs_.back();
  if (run.steps.empty()) run.first_line = start_.empty() ? step.line : start_line_;
  run.last_line = step.line;
  run.steps.push_back(step);
  start_ = {};
  return true;
}

void Runs::add_memory(costmodel::MemoryCounter counter, double bytes) {
  using costmodel::MemoryCounter;
  if (runs_.empty() || !start_.empty()) return;
  LoggedMemory& memory = runs_.back().memory;
  if (memory.bytes > 0 && memory.counter != counter) {
    if (counter == MemoryCounter::reserved) return;
    memory.bytes = 0;
  }
  memory.counter = counter;
  memory.bytes = std::max(memory.bytes, bytes);
}

std::vector<Log> Runs::take() {
  for (Log& run : runs_) multiply_degrees(run.stated);
  return std::move(runs_);
}

}  // namespace fomoe::step_profiles
