// The GPUs of one site, and the parallel degrees by which they share the model and the batch.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "costmodel/inputs/enum_names.hpp"
#include "costmodel/inputs/training_stack.hpp"

namespace fomoe::costmodel {

enum class OuterStateOn { device, host };
constexpr auto enum_names(OuterStateOn) {
  return std::to_array<EnumName<OuterStateOn>>(
      {{OuterStateOn::device, "device"}, {OuterStateOn::host, "host"}});
}

/// PCIe 4.0 with 16 lanes and pinned host memory: 25.4 of 32 GB/s were measured on A100 GPUs (repository
/// jdh4/della-gpu-A100). The default of compute.host_bandwidth.
inline constexpr double kHostBytesPerS = 25e9;

/// GPUs of a site = data · sharded · tensor · context · pipeline. The data-parallel degree is the quotient of
/// `count` and the other degrees.
///   data      replicas of the model, each with its part of the batch
///   sharded   data parallelism that divides optimiser state (ZeRO stage 1), gradients (2) and weights (3)
///             (Rajbhandari et al. 2020, ZeRO)
///   tensor    divides every matrix and, with sequence parallelism, every activation
///             (Shoeybi et al. 2019, Megatron-LM; Korthikanti et al. 2022)
///   context   divides the tokens of a sequence. It is data parallelism for the state, which its GPUs shard
///             too if the state is sharded (sharded_degrees)
///   pipeline  divides the layers into stages, with the 1F1B schedule (Narayanan et al. 2021)
/// Expert parallelism multiplies nothing: its GPUs are those of the other degrees, each of which holds a part
/// of the experts, and tokens are sent to them (Lepikhin et al. 2020, GShard; Megatron-LM's parallel_state,
/// torchtitan's and DeepSpeed's expert groups). expert_tensor GPUs divide the matrices of an expert.
struct SiteGpus {
  int count = 1;
  int sharded = 1;
  /// Stage of the sharded degree: 1, 2 or 3. 0: context-parallel GPUs of Megatron-LM or DeepSpeed, of which
  /// nobody has stated that they shard the optimiser's state.
  int zero_stage = 3;
  int tensor_parallel = 1;
  int context_parallel = 1;
  int expert_parallel = 1;
  int pipeline_parallel = 1;
  int virtual_stages = 1;  // parts of a stage's layers in an interleaved pipeline
  std::optional<int> expert_tensor_parallel = std::nullopt;  // empty: the stack's, see experts_tensor()
  std::optional<bool> sequence_parallel = std::nullopt;      // empty: with tensor parallelism
  ContextExchange context_exchange = ContextExchange::ring;
  double intra_site_bytes_per_s = 0;  // bandwidth of one GPU, each way; 0: not given
  double gpu_memory_bytes = 0;        // memory of one GPU that programs can use; 0: not given
  double memory_bytes_per_s = 0;      // bandwidth of this memory; 0: not given
  /// Rate between the memory of a GPU and that of its host, each way.
  double host_bytes_per_s = kHostBytesPerS;
  std::int64_t micro_batch_sequences = 0;  // sequences of one forward and backward pass; 0: not given
  bool activation_checkpointing = false;   // each layer keeps its input only and repeats its forward pass
  std::int64_t checkpoint_every = 1;       // with it: only every n-th layer does
  SelectiveCheckpointing selective_checkpointing = SelectiveCheckpointing::none;
  OuterStateOn outer_state_on = OuterStateOn::device;
  Stack stack = Stack::fomoe;
  bool stack_assumed = false;  // nobody has stated it: GPUs that share weights would mean torchtitan
  std::optional<Logits> logits = std::nullopt;              // empty: the stack's
  std::optional<StateDtype> gradient_dtype = std::nullopt;  // empty: the stack's
  StateDtype moment_dtype = StateDtype::fp32;

  bool data_parallel_given = false;  // the scenario states it, and not only the number of GPUs

  [[nodiscard]] int data_parallel() const {
    return count / (sharded * tensor_parallel * context_parallel * pipeline_parallel);
  }
  /// GPUs that process one micro-batch together.
  [[nodiscard]] int gpus_per_replica() const {
    return tensor_parallel * context_parallel * pipeline_parallel;
  }
  /// GPUs that divide the matrices of an expert: without expert parallelism, and with Megatron-LM's default,
  /// those that divide the other matrices. torchtitan and DeepSpeed divide no expert.
  [[nodiscard]] int experts_tensor() const {
    const bool whole = expert_parallel > 1 && (stack == Stack::torchtitan || stack == Stack::deepspeed);
    return expert_tensor_parallel.value_or(whole ? 1 : tensor_parallel);
  }
  /// GPUs that divide the experts of a layer, each of them as many times as `expert_tensor` says.
  [[nodiscard]] int experts_divided() const { return expert_parallel * experts_tensor(); }
  /// By how much more the optimiser's work on experts is divided than that on other parameters.
  [[nodiscard]] double expert_division() const {
    return std::max(1.0,
                    static_cast<double>(experts_divided()) / (tensor_parallel * sharded * context_parallel));
  }
  /// By how many GPUs the activations are divided that tensor parallelism alone leaves whole.
  [[nodiscard]] int sequence_divided() const {
    return sequence_parallel.value_or(tensor_parallel > 1) ? tensor_parallel : 1;
  }
};

}  // namespace fomoe::costmodel
