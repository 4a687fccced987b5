// The GPUs of one site and how they share the model and the batch.
#pragma once
#include <cstdint>

namespace fomoe::costmodel {

enum class OuterStateOn { device, host };
const char* to_string(OuterStateOn where);

/// GPUs of a site = data · sharded · tensor · expert · pipeline; what the other degrees leave is
/// data-parallel.
///   data      replicas of the model, each with its part of the batch
///   sharded   as data, but optimiser state (ZeRO stage 1), gradients (2) and weights (3) are divided
///             (Rajbhandari et al. 2020, ZeRO)
///   tensor    every matrix and, with sequence parallelism, every activation is divided
///             (Shoeybi et al. 2019, Megatron-LM; Korthikanti et al. 2022)
///   expert    as data, but each GPU holds its part of the experts and tokens travel to them
///             (Lepikhin et al. 2020, GShard)
///   pipeline  layers are divided into stages; one forward, one backward (Narayanan et al. 2021)
struct SiteGpus {
  int count = 1;
  int sharded = 1;
  int zero_stage = 3;  // 1, 2 or 3; of the sharded degree
  int tensor_parallel = 1;
  int expert_parallel = 1;
  int pipeline_parallel = 1;
  double intra_site_bytes_per_s = 0;       // of one GPU, each way; 0: nobody gave one
  double gpu_memory_bytes = 0;             // of one GPU; 0: nobody gave it
  std::int64_t micro_batch_sequences = 0;  // of one forward and backward pass; 0: nobody gave it
  bool activation_checkpointing = false;   // each layer keeps its input alone and is computed again
  OuterStateOn outer_state_on = OuterStateOn::device;

  [[nodiscard]] int data_parallel() const {
    return count / (sharded * tensor_parallel * expert_parallel * pipeline_parallel);
  }
};

}  // namespace fomoe::costmodel
