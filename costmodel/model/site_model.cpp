#include "costmodel/model/site_model.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "costmodel/inputs/at_site.hpp"
#include "costmodel/model/activations.hpp"
#include "costmodel/model/flops.hpp"
#include "costmodel/model/residency.hpp"
#include "costmodel/plan/method.hpp"
#include "costmodel/plan/site_shares.hpp"
#include "platforms/support/input_error.hpp"

namespace fomoe::costmodel {

namespace {

void refuse(const char* key, std::int64_t got, const std::string& expected, std::int64_t example) {
  throw InputError(std::string("compute.") + key, std::to_string(got), expected,
                   std::string(key) + " = " + std::to_string(example));
}

}  // namespace

std::int64_t micro_batch_sequences(const Scenario& scenario) {
  if (const auto* profiled = std::get_if<ProfiledCompute>(&scenario.compute))
    return profiled->micro_batch_sequences;
  return scenario.gpus.micro_batch_sequences;
}

namespace {

// Of a site; `scenario` is that of the site.
StepPasses passes_of_site(const Scenario& scenario, int site) {
  const auto micro_batch = static_cast<double>(micro_batch_sequences(scenario));
  const auto sequences = static_cast<double>(local_batch_sequences(scenario, site));
  if (micro_batch == 0 || sequences == 0) return {};
  const SiteGpus& gpus = scenario.gpus;
  const double of_replica = std::ceil(sequences / (gpus.count / gpus.gpus_per_replica()));
  const double count = std::ceil(of_replica / micro_batch);
  return {count, std::min(1.0, micro_batch / of_replica), 1 - (count - 1) * micro_batch / of_replica, true};
}

bool sites_differ(const Scenario& scenario) {
  return !scenario.site_compute.empty() || !scenario.workload.batch_shares.empty();
}

}  // namespace

StepPasses step_passes(const Scenario& scenario) {
  StepPasses all = passes_of_site(AtSite(scenario, 0), 0);
  for (int site = 1; site < (sites_differ(scenario) ? scenario.sites() : 1); ++site) {
    const StepPasses own = passes_of_site(AtSite(scenario, site), site);
    all.count = std::max(all.count, own.count);
    all.first_share = std::min(all.first_share, own.first_share);
    all.last_share = std::min(all.last_share, own.last_share);
    all.given = all.given || own.given;
  }
  return all;
}

namespace {

/// Bytes of the sum of the gradients of several micro-batches.
double bytes_of_gradients(const SiteGpus& gpus) {
  if (gpus.gradient_dtype) return bytes_of(*gpus.gradient_dtype);
  return gpus.stack == Stack::deepspeed ? 2 : 4;
}

/// fomoe-train keeps the gradients of a step of one micro-batch as the backward pass leaves them, in 16 bits.
/// It divides no model among GPUs.
double gradient_bytes_of_one_pass(const Scenario& scenario) {
  const auto* profiled = std::get_if<ProfiledCompute>(&scenario.compute);
  const SiteGpus& gpus = scenario.gpus;
  if (gpus.stack != Stack::fomoe) return bytes_of_gradients(gpus);
  if (profiled == nullptr || profiled->profile.dtype != "bf16") return 4;
  const bool divided = gpus.gpus_per_replica() * gpus.expert_parallel > 1;
  if (divided || (gpus.sharded > 1 && gpus.zero_stage > 1)) return 4;
  const auto& origin = profiled->profile.origin;
  return !origin || origin->kind == "fomoe-train" ? 2 : 4;
}

}  // namespace

double outer_bytes_per_parameter(const Method& method, OuterOptimizer optimizer) {
  if (!has_axis(method, "outer_optimizer")) return method.outer_bytes_per_parameter;
  switch (optimizer) {
    case OuterOptimizer::nesterov:
      return 4 + 4;
    case OuterOptimizer::adam:
    case OuterOptimizer::yogi:
      return 4 + 4 + 4;
    case OuterOptimizer::average:
    case OuterOptimizer::local_adamw:
      return 0;
  }
  return 0;
}

SiteModel site_model(const Scenario& scenario) {
  const ModelShape& shape = scenario.model;
  SiteModel model;
  model.opaque = shape.opaque.has_value();
  model.gpus = scenario.gpus;
  model.layers = static_cast<double>(shape.layers);
  model.moe_layers = static_cast<double>(moe_layers(shape));
  model.blocks =
      static_cast<double>(2 * shape.layers - shape.layers_without_attention - shape.layers_without_ffn);
  model.d_model = static_cast<double>(shape.d_model);
  model.sequence_length = static_cast<double>(shape.sequence_length);
  model.embedding_elements = static_cast<double>(count_parameters(shape).embedding);
  model.table_elements = static_cast<double>(shape.vocabulary * shape.d_model);
  model.experts = static_cast<double>(shape.experts);
  model.active_experts = static_cast<double>(shape.active_experts);
  model.skip_token = scenario.strategy.skip_token;
  if (scenario.strategy.capacity_factor > 0 && has_axis(*scenario.strategy.method, "capacity_factor"))
    model.expert_padding = scenario.strategy.capacity_factor;
  model.micro_batch_sequences = static_cast<double>(micro_batch_sequences(scenario));
  model.outer_bytes_per_parameter =
      outer_bytes_per_parameter(*scenario.strategy.method, scenario.strategy.outer_optimizer);
  const Method& method = *scenario.strategy.method;
  if (has_axis(method, "overlap_steps") && scenario.strategy.overlap_steps > 0) {
    model.in_flight_share = 1.0 / scenario.strategy.fragments;
    model.in_flight = fragments_in_flight(fragment_turns(scenario.strategy));
  }
  model.moment_bytes_per_parameter =
      scenario.strategy.method->moment_bytes_per_parameter * bytes_of(scenario.gpus.moment_dtype) / 4;
  model.encoded_differences = scenario.strategy.method->encoded_differences;
  model.encoded_parameters = scenario.strategy.method->encoded_parameters;
  if (const auto* profiled = std::get_if<ProfiledCompute>(&scenario.compute);
      profiled != nullptr && profiled->profile.synchronisation)
    model.outer_step_s_per_parameter = profiled->profile.synchronisation->outer_step_s_per_parameter;
  model.gradient_bytes_of_one_pass = gradient_bytes_of_one_pass(scenario);
  model.gradient_bytes = bytes_of_gradients(scenario.gpus);
  model.outer_state_of_embedding = !scenario.strategy.method->own_embedding;
  if (scenario.strategy.method->residency == Residency::sharded_gathered) {
    model.shards_all_gpus = true;
    model.reduces_once = scenario.strategy.sharding == Sharding::full_shard_no_sync;
    model.gpus.zero_stage = scenario.strategy.sharding == Sharding::shard_grad_op ? 2 : 3;
  }
  if (scenario.strategy.method->residency == Residency::sharded) {
    model.pipeline_micro_batches = static_cast<double>(scenario.strategy.micro_batches);
    model.one_forward_one_backward = scenario.strategy.schedule == PipelineSchedule::one_f_one_b;
  }
  const bool experts_elsewhere = scenario.strategy.method->residency == Residency::experts_sharded;
  count_activations(shape, scenario.gpus.expert_parallel == 1 && !experts_elsewhere, model);
  model.stack_shape = stack_shape(shape, scenario.strategy.skip_token || experts_elsewhere);
  model.key_value_elements = model.stack_shape.keys + model.stack_shape.values;
  model.attention_elements = model.key_value_elements + model.stack_shape.queries + model.stack_shape.output;
  return model;
}

void set_rates(SiteModel& model, const SiteGpus& gpus) {
  model.gpus.intra_site_bytes_per_s = gpus.intra_site_bytes_per_s;
  model.gpus.memory_bytes_per_s = gpus.memory_bytes_per_s;
  model.gpus.host_bytes_per_s = gpus.host_bytes_per_s;
}

SiteLoad site_load(const Scenario& scenario, int site, const SiteModel& model, const Fixed& fixed,
                   const Axes& axes) {
  SiteLoad load{};
  load.gpus = scenario.gpus.count;
  load.executed_experts = executed_experts(model, expert_shares(scenario).of_layer(site));
  keep(load, residency_of(*scenario.strategy.method, scenario.strategy.sharding), fixed, axes,
       expert_shares(scenario).held(site));
  return load;
}

namespace {

/// Settings that the stack has.
void check_stack(const SiteGpus& gpus) {
  const auto refuse_with = [&](const char* key, const char* got, const std::string& expected,
                               const std::string& example) {
    throw InputError(std::string("compute.") + key,
                     std::string(got) + " with stack = \"" + to_string(gpus.stack) + '"', expected, example);
  };
  std::vector<Logits> known = {Logits::fp32_whole};
  if (gpus.stack == Stack::fomoe) known = {Logits::chunked};
  if (gpus.stack == Stack::megatron) known = {Logits::fp32_whole, Logits::fp32_fused, Logits::bf16_fused};
  if (gpus.stack == Stack::torchtitan) known = {Logits::fp32_whole, Logits::compiled};
  if (gpus.logits && std::find(known.begin(), known.end(), *gpus.logits) == known.end()) {
    std::string names;
    for (const Logits logits : known)
      names += (names.empty() ? "one of \"" : ", \"") + std::string(to_string(logits)) + '"';
    refuse_with("logits", to_string(*gpus.logits), names,
                std::string("logits = \"") + to_string(known.front()) + '"');
  }
  const SelectiveCheckpointing selective = gpus.selective_checkpointing;
  if (selective == SelectiveCheckpointing::none) return;
  if (gpus.activation_checkpointing)
    throw InputError("compute.selective_checkpointing", "activation_checkpointing as well",
                     "only one of them", "activation_checkpointing = false");
  const Stack has = selective == SelectiveCheckpointing::operators ? Stack::torchtitan : Stack::megatron;
  if (gpus.stack != has)
    refuse_with("selective_checkpointing", to_string(selective),
                std::string("stack = \"") + to_string(has) + "\", which has it",
                "selective_checkpointing = \"none\"");
}

}  // namespace

void check_site_gpus(const Scenario& scenario) {
  const SiteGpus& gpus = scenario.gpus;
  const ModelShape& shape = scenario.model;
  const std::int64_t degrees = std::int64_t{1} * gpus.sharded * gpus.gpus_per_replica();
  if (gpus.count % degrees != 0) {
    refuse("gpus_per_site", gpus.count,
           "a multiple of " + std::to_string(degrees) +
               ", the product of sharded, tensor_parallel, context_parallel and pipeline_parallel",
           degrees);
  }
  check_stack(gpus);
  const bool in_parts =
      gpus.checkpoint_every > 1 || gpus.selective_checkpointing != SelectiveCheckpointing::none;
  if (in_parts && scenario.strategy.method->residency == Residency::experts_sharded)
    throw InputError("compute.activation_checkpointing", "of a part of each layer or of some layers",
                     "all layers or none, with a method that sends tokens to experts at other sites",
                     "checkpoint_every = 1");
  if (shape.opaque) {
    const std::string expected = "1 for a model of which only counts are known";
    if (gpus.tensor_parallel > 1) refuse("tensor_parallel", gpus.tensor_parallel, expected, 1);
    if (gpus.context_parallel > 1) refuse("context_parallel", gpus.context_parallel, expected, 1);
    if (gpus.expert_parallel > 1) refuse("expert_parallel", gpus.expert_parallel, expected, 1);
    if (gpus.pipeline_parallel > 1) refuse("pipeline_parallel", gpus.pipeline_parallel, expected, 1);
    return;
  }
  if (shape.heads % gpus.tensor_parallel != 0) {
    refuse("tensor_parallel", gpus.tensor_parallel,
           "a divisor of " + std::to_string(shape.heads) + ", the number of attention heads", 1);
  }
  if (shape.sequence_length % gpus.context_parallel != 0) {
    refuse("context_parallel", gpus.context_parallel,
           "a divisor of " + std::to_string(shape.sequence_length) + ", the tokens of a sequence", 1);
  }
  if (gpus.pipeline_parallel > shape.layers) {
    refuse("pipeline_parallel", gpus.pipeline_parallel,
           "at most the model's " + std::to_string(shape.layers) + " layers", 1);
  }
  if (std::int64_t{gpus.virtual_stages} * gpus.pipeline_parallel > shape.layers ||
      (gpus.virtual_stages > 1 && gpus.pipeline_parallel == 1)) {
    refuse("virtual_stages", gpus.virtual_stages,
           "1, or with pipeline_parallel above 1 at most as many as a stage has layers", 1);
  }
  const std::int64_t fewest = expert_shares(scenario).fewest_of_layer(),
                     most = expert_shares(scenario).most_of_layer();
  if (gpus.expert_parallel > 1 &&
      (most == 0 || fewest % gpus.expert_parallel != 0 || most % gpus.expert_parallel != 0)) {
    refuse("expert_parallel", gpus.expert_parallel,
           fewest == most ? "a divisor of " + std::to_string(most) +
                                ", the number of experts that a site holds in each layer"
                          : "1, because a site holds " + std::to_string(fewest) +
                                " experts in some layers and " + std::to_string(most) + " in others",
           1);
  }
  const int of_stage = gpus.count / gpus.pipeline_parallel;
  if (of_stage % gpus.experts_divided() != 0) {
    refuse("expert_parallel", gpus.expert_parallel,
           "a divisor of " + std::to_string(of_stage / gpus.experts_tensor()) +
               ", the GPUs of a pipeline stage that hold different parts of the experts",
           1);
  }
}

}  // namespace fomoe::costmodel
