#include "trainer/run/starting_point.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>

#include "platforms/support/input_error.hpp"
#include "platforms/support/parse_number.hpp"
#include "trainer/execution/executor.hpp"
#include "trainer/run/agreement.hpp"

namespace fomoe::trainer {

using nlohmann::json;

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
  std::vector<std::int64_t> usable;
  try {
    usable = checkpoints.usable(
        hosted,
        {[&](std::int64_t rounds, costmodel::NodeId node) -> std::optional<std::int64_t> {
           const costmodel::Node& of = plan.nodes[static_cast<std::size_t>(node)];
           if (of.kind != costmodel::NodeKind::worker) return std::nullopt;
           return steps_after(plan, rounds);
         },
         [&](std::int64_t rounds, costmodel::NodeId node) {
           if (!plan.placement) return std::vector<std::vector<int>>();
           const costmodel::Placement placement = plan.placement(std::min(rounds, plan.rounds));
           return expert_choice(&placement, node, false).local;
         },
         plan.steps},
        reasons);
  } catch (const FileError& error) {
    return kNone + std::string(error.what());
  }
  if (usable.empty() && !reasons.empty()) return kNone + reasons.front();  // that of the newest
  json text = json::object();
  for (const std::int64_t rounds : usable) {
    std::vector<int> absent;
    for (const costmodel::NodeId node : checkpoints.absent_in(rounds, hosted.front()))
      absent.push_back(plan.nodes[static_cast<std::size_t>(node)].site);
    text[std::to_string(rounds)] = absent;
  }
  return text.dump();
}

CommonState common_state(const std::vector<std::string>& texts, bool drops) {
  using Rounds = std::map<std::int64_t, std::vector<int>>;  // with the absent processes
  std::vector<std::optional<Rounds>> known(texts.size());   // by process; empty: it has no say
  for (std::size_t process = 0; process < texts.size(); ++process) {
    const std::string& text = texts[process];
    if (text.empty() || text == kIdle) continue;
    if (text.starts_with(kNone)) throw FileError(text.substr(std::string(kNone).size()));
    Rounds& rounds = known[process].emplace();
    const json read = json::parse(text);
    for (const auto& [round, absent] : read.items())
      rounds[std::stoll(round)] = absent.get<std::vector<int>>();
    if (rounds.empty() && drops && process > 0) known[process].reset();
  }
  CommonState state;
  const auto first = std::find_if(known.begin(), known.end(), [](const auto& rounds) { return rounds; });
  if (first == known.end()) return state;
  for (const auto& [round, absent] : **first) {
    bool all = true;
    for (std::size_t process = 0; process < known.size(); ++process) {
      const bool was_absent =
          std::find(absent.begin(), absent.end(), static_cast<int>(process)) != absent.end();
      all = all && (!known[process] || was_absent || known[process]->contains(round));
    }
    if (all) state.rounds = round;
  }
  if (state.rounds == 0) return state;
  for (std::size_t process = 0; process < known.size(); ++process) {
    const bool there = !texts[process].empty() && texts[process] != kIdle;
    state.lacking.push_back(there && !(known[process] && known[process]->contains(state.rounds)));
  }
  return state;
}

std::int64_t round_after(const costmodel::Plan& plan, const WholeModel& whole, std::int64_t tokens) {
  std::int64_t round = 1;
  while (round < plan.rounds && steps_after(plan, round) < whole.steps) ++round;
  if (round < plan.rounds && steps_after(plan, round) == whole.steps) return round;
  const std::int64_t all_steps = steps_after(plan, plan.rounds);
  if (whole.steps >= all_steps)
    throw UsageError("--start-from: got a state after " + std::to_string(whole.steps) +
                     " steps, in a run of " + std::to_string(all_steps) +
                     "; expected a longer run, which goes on from there; for example --set workload.tokens=" +
                     std::to_string(2 * whole.steps * (tokens / all_steps)));
  const std::int64_t local_steps = whole.steps / std::max<std::int64_t>(1, whole.rounds);
  throw UsageError("--start-from: got a state after " + std::to_string(whole.steps) +
                   " steps; expected one with which a round of this run begins, such as the state after " +
                   std::to_string(steps_after(plan, std::min(round, plan.rounds - 1))) +
                   " steps; for example --set strategy.local_steps=" +
                   std::to_string(std::max<std::int64_t>(1, local_steps)));
}

std::string started_from(const WholeModel& whole, Executor& executor, const std::string& path) {
  const std::vector<costmodel::NodeId> hosted = executor.hosted();
  const bool other = std::any_of(hosted.begin(), hosted.end(), [&](costmodel::NodeId node) {
    return of_other_outer_optimizer(whole, executor.worker(node));
  });
  return "starts from the state after " + std::to_string(whole.steps) + " steps in " + path +
         (other ? "; the outer optimiser, which is another one, starts anew" : "");
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
  same("d_ffn", weights.d_ffn, scenario.d_ffn);
  same("vocabulary", weights.vocabulary, scenario.vocabulary);
}

void check_same_constants(const ModelConstants& weights, const ModelConstants& scenario) {
  const auto same = [](const char* key, double given, double wanted) {
    if (given == wanted) return;
    const std::string number = json(given).dump();
    throw InputError(std::string("trainer.") + key, json(wanted).dump(),
                     number + ", with which the weights to start from were trained",
                     std::string(key) + " = " + number);
  };
  same("rope_theta", weights.rope_theta, scenario.rope_theta);
  same("router_temperature", weights.router_temperature, scenario.router_temperature);
}

namespace {

std::string entry(const Digest& digest, const char* name) {
  for (const auto& [key, value] : digest) {
    if (key == name) return value;
  }
  return "";
}

}  // namespace

void check_unseen(const WholeModel& whole, const RunData& data, std::int64_t sequences, std::ostream& out) {
  if (whole.trained_on.empty()) {
    out << "it is not known which data this model was trained on, so these sequences may be part of "
           "them\n";
    return;
  }
  const std::string trained_on = entry(whole.trained_on, kTrainingData);
  if (data.validation_corpus) {
    if (hash_of(*data.validation_corpus) == trained_on)
      throw UsageError(
          "trainer.validation_data: got the data on which the model was trained; expected other data; for "
          "example --set trainer.validation_data=other-tokens.bin");
    return;
  }
  // A training by domains lists its files.
  if (hash_of(data.corpus) != trained_on && hash_of(data.own_files()) != trained_on) return;
  const bool left_out = entry(whole.trained_on, kValidationData) == kEndOfData;
  const std::string kept = left_out ? entry(whole.trained_on, kValidationSequences) : "0";
  if (sequences <= parse_number<std::int64_t>(kept).value_or(0)) return;
  throw UsageError("trainer.validation_sequences: got " + std::to_string(sequences) +
                   ", although the training left out " + kept +
                   " sequences of these data; expected at most " + kept +
                   ", or other data; for example --set trainer.validation_data=other-tokens.bin");
}

void check_start(const WholeModel& whole, const RunRequest& request, const RunData& data,
                 const ModelConstants& constants, std::ostream& out) {
  check_same_model(whole.shape, request.scenario.model);
  check_same_constants(whole.constants, constants);
  if (request.settings.validation_sequences > 0 && data.batches)
    check_unseen(whole, data, request.settings.validation_sequences, out);
}

void check_checkpoints(const RunRequest& request) {
  if (!request.checkpoints.empty() && !request.resume &&
      !Checkpoints(request.checkpoints, {}).complete({}).empty()) {
    throw UsageError(
        "--checkpoints: got " + request.checkpoints +
        ", which already contains checkpoints; expected another directory, or --resume; for example "
        "--checkpoints " +
        request.checkpoints + " --resume");
  }
}

}  // namespace fomoe::trainer
