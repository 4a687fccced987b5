// Keys of the GPUs of a site and of step times.
#include "experiments/scenario/keys/members.hpp"

namespace fomoe::scenario {
namespace {

using costmodel::AssumedDevice;
using costmodel::GivenStepTime;
using costmodel::SiteGpus;
using costmodel::StepVariation;

/// Whether [compute] describes all sites.
bool one_compute(const Scenario& scenario) {
  return scenario.site_compute.empty() && scenario.workload.batch_shares.empty();
}

template <auto Field>
constexpr KeyMember gpus = member<Field, one_compute>;
template <auto Field>
constexpr KeyMember variation = unwritten(member<Field>);

constexpr KeyMember gpu_count = {
    .set = gpus<&SiteGpus::count>.set, .get = gpus<&SiteGpus::count>.get, .has_rules = true};
constexpr KeyMember data_parallel = {.get = [](const Scenario& scenario) -> MemberValue {
  return std::int64_t{scenario.gpus.data_parallel()};
}};

constexpr KeyMember stack = {
    .get = gpus<&SiteGpus::stack>.get, .names = costmodel::all_names<costmodel::Stack>, .has_rules = true};

template <class Compute>
bool set_compute(Scenario& scenario, double Compute::*field, double value) {
  auto* found = std::get_if<Compute>(&scenario.compute);
  if (found == nullptr || !one_compute(scenario)) return false;
  found->*field = value;
  return true;
}
template <auto Field>
constexpr KeyMember compute = {
    .set = [](Scenario& scenario, double value) { return set_compute(scenario, Field, value); },
    .has_rules = true};

bool set_peak(Scenario& scenario, double value) {
  scenario.peak_flops = value;
  return set_compute(scenario, &AssumedDevice::peak_flops, value);
}
constexpr KeyMember peak = {.set = set_peak, .has_rules = true};

bool set_micro_batch(Scenario& scenario, double value) {
  if (auto* profiled = std::get_if<costmodel::ProfiledCompute>(&scenario.compute))
    assign(profiled->micro_batch_sequences, value);
  return gpus<&SiteGpus::micro_batch_sequences>.set(scenario, value);
}
constexpr KeyMember micro_batch = {.set = set_micro_batch, .get = gpus<&SiteGpus::micro_batch_sequences>.get};

constexpr Key kComputeKeys[] = {
    {"profile", Kind::text, "", "no profile",
     "step profile written by `fomoe-train profile`, relative to this file, or \"published:ID\" with an id "
     "that `fomoe list profiles` prints",
     "\"../profiles/this-machine.json\""},
    {"micro_batch_sequences", Values(Kind::count, 1e9), "",
     "the largest micro-batch in the profile, or that of its log; otherwise memory does not include "
     "activations",
     "number of sequences in one forward and backward pass of one replica", "8", micro_batch, counts},
    {"step_time", Kind::duration, "",
     "the step time follows from profile, or from mfu or kernel_efficiency and a peak rate",
     "duration of one optimiser step of one site, for any batch size", "\"420ms\"",
     compute<&GivenStepTime::seconds>, times},
    {"peak_flops", Kind::flop_rate, "", "the accelerator's peak", "peak FLOP rate of one GPU",
     "\"989TFLOPS\"", peak, times},
    {"accelerator", Kind::text, "", "peak, memory and power are given by other keys, or are unknown",
     "device of the catalogue (`fomoe list accelerators`) whose datasheet gives peak_flops, gpu_memory and "
     "energy.gpu_power unless these keys are set",
     "\"H100-SXM\""},
    {"dtype", Kind::choice, "\"bf16\"", "",
     "number format of the matrix products; selects the accelerator's peak", "\"bf16\"",
     one_of<"bf16", "fp16", "fp8", "tf32", "fp32">},
    {"mfu", Kind::share, "", "no MFU is assumed",
     "model FLOPs ÷ (step time × peak), as papers and logs report it; a step includes everything", "0.4",
     compute<&AssumedDevice::mfu>, times},
    {"kernel_efficiency", Kind::share, "", "mfu is given",
     "share of the peak in forward and backward passes, by the FLOPs that are executed: with recomputation, "
     "and "
     "without the half of attention that causal masking removes; communication inside a site comes on top, "
     "so it "
     "suits studies of activation_checkpointing, of the parallel degrees and of long sequences",
     "0.5", compute<&AssumedDevice::kernel_efficiency>, times},
    {"gpus_per_site", Values(Kind::count, kMaxGpus), "",
     "data_parallel × sharded × tensor_parallel × context_parallel × pipeline_parallel",
     "number of GPUs in a site; profile and peak_flops describe one GPU, whereas step_time describes the "
     "whole site",
     "8", gpu_count, counts},
    {"data_parallel", Values(Kind::count, kMaxGpus), "",
     "gpus_per_site ÷ (sharded × tensor_parallel × context_parallel × pipeline_parallel)",
     "number of replicas of the model in a site; each processes a part of the batch", "2", data_parallel},
    {"sharded", Values(Kind::count, kMaxGpus), "1", "",
     "number of GPUs that shard optimiser state, gradients and weights (ZeRO, FSDP) and split the batch", "8",
     gpus<&SiteGpus::sharded>, counts},
    {"zero_stage", Values(Kind::count, 3), "", "3, or 1 if stack is megatron",
     "ZeRO stage: 1 shards the optimiser state, 2 also the gradients, 3 also the weights; among the GPUs of "
     "sharded and context_parallel together",
     "2", gpus<&SiteGpus::zero_stage>, counts},
    {"tensor_parallel", Values(Kind::count, kMaxGpus), "1", "", "number of GPUs that split every matrix", "4",
     gpus<&SiteGpus::tensor_parallel>, counts},
    {"expert_parallel", Values(Kind::count, kMaxGpus), "1", "",
     "number of GPUs of a site that divide its experts; they are GPUs of the other degrees", "2",
     gpus<&SiteGpus::expert_parallel>, counts},
    {"expert_tensor_parallel", Values(Kind::count, kMaxGpus), "",
     "tensor_parallel, or 1 if stack is torchtitan or deepspeed and expert_parallel is above 1",
     "number of GPUs that split the matrices of an expert", "1", gpus<&SiteGpus::expert_tensor_parallel>,
     counts},
    {"context_parallel", Values(Kind::count, kMaxGpus), "1", "",
     "number of GPUs that split the tokens of a sequence; they also shard the state as sharded GPUs do: if "
     "sharded is above 1, if zero_stage is given (Megatron-LM's distributed optimiser), or if stack is "
     "torchtitan; otherwise each of them keeps the whole state",
     "2", gpus<&SiteGpus::context_parallel>, counts},
    {"context_exchange", Kind::choice, "\"ring\"", "", "how context-parallel GPUs exchange keys and values",
     "\"all_to_all\"", gpus<&SiteGpus::context_exchange>},
    {"sequence_parallel", Kind::boolean, "", "true if tensor_parallel is above 1",
     "whether tensor-parallel GPUs also split the activations outside of attention and feed-forward blocks "
     "(Korthikanti et al. 2022)",
     "true", gpus<&SiteGpus::sequence_parallel>},
    {"pipeline_parallel", Values(Kind::count, kMaxGpus), "1", "", "number of GPUs that divide the layers",
     "2", gpus<&SiteGpus::pipeline_parallel>, counts},
    {"virtual_stages", Values(Kind::count, kMaxLayers), "1", "",
     "parts of the layers of a stage that an interleaved pipeline computes in turn", "2",
     gpus<&SiteGpus::virtual_stages>, counts},
    {"stack", Kind::choice, "",
     "the framework of an imported profile; fomoe for fomoe-train's models; otherwise torchtitan if sharded "
     "GPUs share weights, and megatron if not",
     "framework whose memory a GPU has: fomoe-train, Megatron-LM, torchtitan or DeepSpeed", "\"megatron\"",
     stack},
    {"logits", Kind::choice, "", "chunked with stack = fomoe, otherwise fp32_whole",
     "how the logits exist in memory: chunked, whole in 32 bits, the same in compiled functions, in 16 bits "
     "as TransformerEngine's loss has them, or as PyTorch's compiler does",
     "\"bf16_fused\"", gpus<&SiteGpus::logits>},
    {"gradient_dtype", Kind::choice, "", "bf16 if stack is deepspeed, otherwise fp32",
     "number format of accumulated gradients", "\"bf16\"", gpus<&SiteGpus::gradient_dtype>},
    {"moment_dtype", Kind::choice, "\"fp32\"", "", "number format of AdamW's moments", "\"bf16\"",
     gpus<&SiteGpus::moment_dtype>},
    {"intra_site_bandwidth", Kind::rate, "", "communication inside a site takes no time",
     "bandwidth between a GPU and the other GPUs of its site, in each direction", "\"450GBps\"",
     gpus<&SiteGpus::intra_site_bytes_per_s>, times, "intra_site_bytes_per_s"},
    {"gpu_memory", Kind::size, "", "the accelerator's memory; without an accelerator, memory is not checked",
     "memory of one GPU", "\"80GiB\"", gpus<&SiteGpus::gpu_memory_bytes>, counts, "gpu_memory_bytes"},
    {"memory_bandwidth", Kind::rate, "",
     "the accelerator's; without an accelerator, AdamW and the outer step take no time",
     "bandwidth of the memory of one GPU, which limits AdamW, the outer step and the encoding of payloads",
     "\"3350GBps\"", gpus<&SiteGpus::memory_bytes_per_s>, times, "memory_bytes_per_s"},
    {"host_bandwidth", Kind::rate, "\"25GBps\"", "",
     "rate between a GPU and the memory of its host, each way, for outer_state_on = \"host\"", "\"50GBps\"",
     gpus<&SiteGpus::host_bytes_per_s>, times, "host_bytes_per_s"},
    {"activation_checkpointing", Kind::boolean, "false", "",
     "whether only the input of each layer is kept and the layer is computed again in the backward pass",
     "true", gpus<&SiteGpus::activation_checkpointing>},
    {"checkpoint_every", Values(Kind::count, kMaxLayers), "1", "",
     "with activation_checkpointing: only every n-th layer is computed again", "2",
     gpus<&SiteGpus::checkpoint_every>, counts},
    {"selective_checkpointing", Kind::choice, "\"none\"", "",
     "part of each layer that is computed again: all operators but attention and every second product "
     "(torchtitan), or attention without its projections (Megatron-LM)",
     "\"attention\"", gpus<&SiteGpus::selective_checkpointing>},
    {"outer_state_on", Kind::choice, "\"device\"", "",
     "memory that holds the outer optimiser's anchor and momentum", "\"host\"",
     gpus<&SiteGpus::outer_state_on>},
    {"step_variation", Kind::share, "", "every step takes the mean time",
     "coefficient of variation of the step time, which has a log-normal distribution", "0.1",
     variation<&StepVariation::coefficient>, links},
    {"straggler_share", Kind::share, "", "no stragglers",
     "share of the steps that take straggler_factor times as long", "0.01",
     variation<&StepVariation::straggler_share>, links},
    {"straggler_factor", Kind::factor, "5", "",
     "factor on the time of a straggler step (see straggler_share)", "5",
     variation<&StepVariation::straggler_factor>, links},
    {"straggler_lasts", Kind::choice, "\"step\"", "",
     "how long a straggling site stays slow: one step, all steps of a round, or the whole run", "\"round\"",
     variation<&StepVariation::straggler_lasts>},
    {"stragglers_together", Kind::share, "", "each site straggles by itself",
     "share of the decisions about stragglers that are made for all sites together", "0.5",
     variation<&StepVariation::stragglers_together>, links},
    {"draw_samples", Kind::boolean, "false", "",
     "whether the time of every step is drawn from the profile's samples instead of being their median",
     "true", variation<&StepVariation::from_samples>},
};

}  // namespace

std::vector<Key> compute_keys() { return keys_in("compute", kComputeKeys); }

}  // namespace fomoe::scenario
