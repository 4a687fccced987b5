// The [trainer] table: what a real training needs beyond what planning does. `fomoe` reads and ignores it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "costmodel/inputs/scenario.hpp"
#include "experiments/scenario/scenario_reader.hpp"

namespace fomoe::scenario {

struct TrainerSettings {
  double learning_rate = 0;
  std::int64_t warmup_steps = 0;
  double weight_decay = 0;
  double clip_norm = 0;       // 0: no clipping
  double balance_weight = 0;  // 0: no load-balancing loss
  std::int64_t restart_warmup_steps = 0;
  double outer_learning_rate = 0;
  double outer_momentum = 0;
  double kept_share = 0;
  std::string data;  // path; empty: synthetic
  std::int64_t validation_sequences = 0;
  std::int64_t validation_rounds = 0;  // 0: after the last round only
  std::int64_t checkpoint_rounds = 1;
  std::string device;                      // auto, cpu, cuda
  std::string dtype;                       // fp32, bf16; empty: the device's
  std::string cuda_graph;                  // auto, on, off
  std::int64_t micro_batch_sequences = 0;  // compute.micro_batch_sequences; 0: the whole local batch
  double timeout_s = 0;
};

/// Of the file that `scenario` was read from, with the same overrides.
TrainerSettings read_trainer_settings(const std::string& path, const ReadOptions& options,
                                      const costmodel::Scenario& scenario);

/// Every setting that decides what is trained, as text: equal texts train alike.
std::string to_text(const TrainerSettings& settings);

}  // namespace fomoe::scenario
