// Memory of a GPU that trains with Megatron-LM, torchtitan or DeepSpeed. fomoe-train's is in activations.hpp.
//
// Each term is there because the framework allocates it; its source stands beside it. Nothing is fitted to a
// measurement, except the range of what the allocator reserves (reserved_share()). The same terms are in
// tests/reference/training_memory.py, and experiments/data/measured_memory.csv has measured runs.
//
// Sources:
//   K  Korthikanti et al. 2022, arXiv 2205.05198, section 4
//   M  Megatron-LM at 23e00ed0 (October 2025) with TransformerEngine 2.8 (TE)
//   N  Narayanan et al. 2021, arXiv 2104.04473, section 2.2
//   T  torchtitan at 9dec370 (December 2024), experts at 003edbe5 (October 2025); P  PyTorch 2
//   D  DeepSpeed 0.14, deepspeed/runtime/zero
//
// Interleaved pipelines with experts, fp8 weights, offloading, attention that keeps its scores, packed
// sequences and modules for several tokens are not in these models.
#pragma once
#include "costmodel/model/parallelism.hpp"

namespace fomoe::costmodel {

inline constexpr double kHalfBytes = 2, kSingleBytes = 4;  // of a 16-bit and of a 32-bit element

/// Bytes of a GPU beside weights, gradients and the state of optimisers.
struct WorkingBytes {
  double activations = 0;  // kept for the backward pass
  double at_peak = 0;      // what exists beside them at the fullest moment
  double buffers = 0;      // kept between steps
  double workspaces = 0;   // of the libraries for matrix products
  double gathered = 0;     // 16-bit copies of weights that ZeRO 3 gathers
  /// Memory that the allocator keeps of one stream and cannot give to another; not in the allocated bytes.
  double cached = 0;
};

/// Layers of a pipeline stage, by whether they have experts, and the stage's place.
struct StageLayers {
  double dense = 0, moe = 0;
  bool first = true, last = true;  // the first stage has the embedding, the last one the unembedding
};
StageLayers layers_of_stage(const SiteModel& model, const SiteLoad& load, int stage);

/// Tokens of one micro-batch on a GPU.
inline double tokens_of_pass(const SiteModel& model, double micro_batch_sequences) {
  return micro_batch_sequences * model.sequence_length / model.gpus.context_parallel;
}

/// Rows of the embedding table with padding: Megatron-LM has a multiple of 128·t
/// (M megatron/training/tokenizer).
double padded_vocabulary(const SiteModel& model);

/// Parameters of the experts of a site and of its routers, in all layers.
struct ExpertsHeld {
  double experts = 0, routers = 0;
};
ExpertsHeld experts_held(const SiteModel& model, const SiteLoad& load);

/// Parameters on a GPU of a stage: its own layers, and not the mean of all stages as in stage_parameters().
StageParameters parameters_in_memory(const SiteModel& model, const SiteLoad& load, int stage);

/// Micro-batches of a replica in a step; 0 if a micro-batch has no sequences.
double micro_batches_of_step(const SiteModel& model, const SiteLoad& load, double micro_batch_sequences);
/// Those of them whose activations exist at once, in all layers of a stage (N, figure 4; M
/// pipeline_parallel/schedules.py; P distributed/pipelining/schedules.py has the same schedules, and
/// DeepSpeed the first of them).
double in_flight(const SiteModel& model, const SiteLoad& load, double micro_batch_sequences, int stage);

/// Bytes of a parameter: 16-bit weights, or torchtitan's 32-bit ones, which need no master weights.
double weight_bytes(const SiteModel& model);
double master_weight_bytes(const SiteModel& model);

/// The 32-bit gradients of a stage that is kept whole, at the fullest moment, when the first micro-batches
/// come back. If each passes once (P distributed/pipelining/schedules.py), the gradients of a stage's last
/// chunk of layers are reduced before those of another exist.
double whole_gradient_bytes(const SiteModel& model, const SiteLoad& load, double micro_batches,
                            double parameters);

/// For micro-batches of so many sequences; without activations if that is 0. `gradients`: bytes of a GPU's
/// part of all gradients if torchtitan has it only from the first reduction to the optimiser's step: a step
/// has one micro-batch, or keeps_stage_whole().
WorkingBytes megatron_bytes(const SiteModel& model, const SiteLoad& load, double micro_batch_sequences,
                            int stage);
WorkingBytes torchtitan_bytes(const SiteModel& model, const SiteLoad& load, double micro_batch_sequences,
                              int stage, double gradients);
WorkingBytes deepspeed_bytes(const SiteModel& model, const SiteLoad& load, double micro_batch_sequences,
                             int stage);

/// cuBLAS has 32 MiB for each thread with a handle on Hopper and later, and the forward and the backward pass
/// have a thread each (P aten/src/ATen/cuda/CublasHandlePool.cpp).
inline constexpr double kMiB = 0x1p20;
inline constexpr double kCublasWorkspaces = 2 * 32 * kMiB;

/// What the allocator reserves ÷ what it has allocated at the peak: the range of the measured runs with which
/// the model was built, rounded outwards (8 runs of Megatron-LM on B200, 10 of torchtitan). 1 for the others:
/// not known.
ByteRange reserved_share(Stack stack);

/// Bytes that no counter of PyTorch shows: the context of CUDA, about 0.3 GiB with kernels that are loaded
/// when they are needed (pytorch/pytorch issue 107667), and the buffers of each communicator, 544 MB between
/// two GPUs and 688 MB among more (NVIDIA/nccl issue 964, four A100); half to twice these buffers. 0 for
/// fomoe-train.
ByteRange outside_allocator(const SiteModel& model, const SiteLoad& load);

}  // namespace fomoe::costmodel
