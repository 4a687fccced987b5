#include "experiments/step_profiles/logs/megatron_facts.hpp"

#include <array>

#include "experiments/step_profiles/logs/log_text.hpp"

namespace fomoe::step_profiles {
namespace {

/// The value of an argument: "  world_size ...................................... 1024".
std::optional<std::string_view> argument(std::string_view line, std::string_view name) {
  const auto dots = text_after(line, std::string(name) + " ..");
  if (!dots) return std::nullopt;
  const std::size_t at = dots->find_first_not_of('.');
  if (at == std::string_view::npos || (*dots)[at] != ' ') return std::nullopt;
  return dots->substr(at + 1);
}

void read_counts(std::string_view line, StatedFacts& stated) {
  struct Named {
    const char *argument, *said;  // in the list of arguments, and in "using world size: …"
    std::optional<std::int64_t> StatedFacts::*fact;
  };
  static constexpr auto kNamed = std::to_array<Named>(
      {{" world_size", "using world size: ", &StatedFacts::gpus},
       {" seq_length", nullptr, &StatedFacts::sequence_length},
       {" micro_batch_size", nullptr, &StatedFacts::micro_batch_sequences},
       {" global_batch_size", nullptr, &StatedFacts::sequences_per_step},
       {" tensor_model_parallel_size", "tensor-model-parallel size: ", &StatedFacts::tensor_parallel},
       {" pipeline_model_parallel_size", "pipeline-model-parallel size: ", &StatedFacts::pipeline_parallel},
       {" context_parallel_size", "context-parallel size: ", &StatedFacts::context_parallel},
       {" expert_model_parallel_size", "expert-model-parallel size: ", &StatedFacts::expert_parallel}});
  const bool said = line.find("using world size: ") != std::string_view::npos;
  for (const Named& named : kNamed) {
    if (const auto value = argument(line, named.argument)) stated.*named.fact = leading_count(*value);
    if (said && named.said != nullptr) {
      if (const auto value = count_after(line, named.said)) stated.*named.fact = *value;
    }
  }
}

/// " > number of parameters on (tensor, pipeline) model parallel rank (0, 1): 209445120"; NeMo has "(0 ,1)".
void read_rank(std::string_view line, StatedFacts& stated) {
  const auto rank = text_after(line, "number of parameters on (tensor, pipeline) model parallel rank (");
  if (!rank) return;
  const auto whole = [](std::string_view text) {
    const std::size_t begin = std::min(text.find_first_not_of(" ,"), text.size());
    return text.substr(begin);
  };
  const std::size_t comma = rank->find(','), end = rank->find("):");
  if (comma == std::string_view::npos || end == std::string_view::npos || comma > end) return;
  const auto index = [](std::string_view digits) { return leading_count(digits).value_or(0); };
  const auto parameters = leading_count(whole(rank->substr(end + 2)));
  if (parameters) stated.parameters_of_ranks[{index(*rank), index(whole(rank->substr(comma)))}] = *parameters;
}

}  // namespace

StatedFacts megatron_facts(const std::string& line) {
  using costmodel::Recomputation;
  StatedFacts stated;
  read_counts(line, stated);
  read_rank(line, stated);
  if (const auto value = argument(line, " recompute_granularity")) {
    stated.recomputation = value->starts_with("full")        ? Recomputation::full
                           : value->starts_with("selective") ? Recomputation::selective
                                                             : Recomputation::none;
  }
  // Megatron-DeepSpeed and Megatron-LM until 2022.
  if (const auto value = argument(line, " checkpoint_activations"))
    stated.recomputation = value->starts_with("True") ? Recomputation::full : Recomputation::none;
  return stated;
}

}  // namespace fomoe::step_profiles
