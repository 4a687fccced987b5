#include "trainer/run/starting_point.hpp"

#include <algorithm>
#include <map>
#include <sstream>

#include "platforms/support/input_error.hpp"

namespace fomoe::trainer {
namespace {

// A process that trains no site has no files and does not restrict the choice.
constexpr const char *kIdle = "idle", *kNone = "none ";

}  // namespace

std::int64_t steps_after(const costmodel::Plan& plan, std::int64_t rounds) {
  std::int64_t steps = 0;
  for (const costmodel::RoundClass& kind : plan.classes) {
    for (std::int64_t i = 0; i < kind.count && kind.round_at(i) < rounds; ++i) steps += kind.steps;
  }
  return steps;
}

std::string resumable(const Checkpoints& checkpoints, const std::vector<costmodel::NodeId>& hosted,
                      const costmodel::Plan& plan, std::vector<std::string>& reasons) {
  if (hosted.empty()) return kIdle;
  const std::vector<std::int64_t> usable = checkpoints.usable(
      hosted, [&](std::int64_t rounds) { return steps_after(plan, rounds); }, reasons);
  if (usable.empty() && !reasons.empty()) return kNone + reasons.back();
  std::string text;
  for (const std::int64_t rounds : usable) text += std::to_string(rounds) + ' ';
  return text;
}

std::int64_t common_round(std::vector<std::string> texts) {
  std::erase(texts, kIdle);
  std::map<std::int64_t, std::size_t> votes;
  for (const std::string& text : texts) {
    if (text.starts_with(kNone)) throw FileError(text.substr(std::string(kNone).size()));
    std::istringstream in(text);
    for (std::int64_t rounds = 0; in >> rounds;) ++votes[rounds];
  }
  std::int64_t common = 0;
  for (const auto& [rounds, count] : votes) {
    if (count == texts.size()) common = rounds;
  }
  return common;
}

std::int64_t round_after(const costmodel::Plan& plan, const WholeModel& whole) {
  std::int64_t round = 1;
  while (round < plan.rounds && steps_after(plan, round) < whole.steps) ++round;
  if (round < plan.rounds && steps_after(plan, round) == whole.steps) return round;
  const std::int64_t local_steps = whole.steps / std::max<std::int64_t>(1, whole.rounds);
  throw UsageError("--start-from: got a state after " + std::to_string(whole.steps) +
                   " steps; expected one with which a round of this run begins, such as the state after " +
                   std::to_string(steps_after(plan, std::min(round, plan.rounds - 1))) +
                   " steps; for example --set strategy.local_steps=" +
                   std::to_string(std::max<std::int64_t>(1, local_steps)));
}

void check_same_model(const costmodel::ModelShape& weights, const costmodel::ModelShape& scenario) {
  const auto same = [](const char* key, std::int64_t given, std::int64_t wanted) {
    if (given == wanted) return;
    throw InputError(std::string("model.") + key, std::to_string(wanted),
                     std::to_string(given) + ", as in the weights to start from",
                     std::string(key) + " = " + std::to_string(given));
  };
  same("d_model", weights.d_model, scenario.d_model);
  same("layers", weights.layers, scenario.layers);
  same("heads", weights.heads, scenario.heads);
  same("experts", weights.experts, scenario.experts);
  same("active_experts", weights.active_experts, scenario.active_experts);
  same("d_expert", weights.d_expert, scenario.d_expert);
  same("vocabulary", weights.vocabulary, scenario.vocabulary);
}

}  // namespace fomoe::trainer
