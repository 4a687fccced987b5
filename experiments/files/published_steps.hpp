// The catalogue of training speeds that others measured and published, for models and devices that were not
// timed here.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "experiments/files/accelerators.hpp"

namespace fomoe::scenario {

/// A row of experiments/data/published_steps.csv. An empty optional means that the source does not state it.
struct PublishedSteps {
  std::string id, model, accelerator;
  std::optional<double> total_parameters, active_parameters, gpus, global_batch_sequences, sequence_length;
  std::string dtype;  // empty: not stated
  std::string source;
  std::string quantity;  // what `value` is: tokens_per_s_per_gpu, step_time_s, model_tflops_per_gpu or mfu
  double value = 0;
  std::optional<double> stated_mfu;  // as printed in the source
};

/// All rows, in file order.
const std::vector<PublishedSteps>& published_steps();
/// Returns nullptr if no row has this id.
const PublishedSteps* find_published_steps(const std::string& id);

/// Tokens per second and GPU: the published value, or, for a step time, sequences · sequence length ÷ (GPUs ·
/// seconds). Empty if the row does not determine it.
std::optional<double> tokens_per_s_per_gpu(const PublishedSteps& row);

/// Of the matrix products, as the catalogue of accelerators names it: bf16 if it is not stated, and fp8 for
/// mxfp8, whose products are as fast.
std::string number_format(const PublishedSteps& row);

/// Peak FLOP/s of the row's accelerator in the row's number format; 0 if the catalogue has none.
double peak_flops(const PublishedSteps& row);

/// Model FLOPs utilisation: as the source states it; otherwise stated FLOP/s ÷ peak, or 6 FLOPs per active
/// parameter and token, without attention, · tokens/s ÷ peak. Empty if the row does not determine it.
std::optional<double> mfu_of(const PublishedSteps& row);

}  // namespace fomoe::scenario
