// The [trainer] table: settings that only a real training needs. `fomoe` checks the names of its keys and
// ignores their values.
#pragma once
#include <cstdint>
#include <string>

namespace fomoe::scenario {

struct TrainerSettings {
  double learning_rate = 0;
  std::int64_t warmup_steps = 0;
  bool warmup_given = false;          // otherwise the default, which depends on the length of the run
  std::string schedule = "constant";  // constant, cosine, wsd
  std::int64_t decay_steps = 0;
  double final_rate_share = 0;
  double beta1 = 0, beta2 = 0, epsilon = 0;  // of the inner AdamW
  std::string rate_transfer;                 // complete_p, none
  std::string inner_moments = "keep";        // keep, restart
  double weight_decay = 0;
  double clip_norm = 0;       // 0: no clipping
  double balance_weight = 0;  // 0: no load-balancing loss
  double rope_theta = 10'000;
  double router_temperature = 1;
  std::int64_t restart_warmup_steps = 0;
  double outer_learning_rate = 0;
  double outer_momentum = 0;
  double kept_share = 0;
  double error_feedback_decay = 1;
  std::string data;             // path of the token data; empty: synthetic data
  std::string data_split;       // shared, iid, domain
  std::string validation_data;  // path; empty: the end of the data
  std::int64_t validation_sequences = 0;
  std::int64_t validation_rounds = 0;  // rounds from one validation to the next; 0: only after the last round
  std::int64_t checkpoint_rounds = 1;
  std::string device;                      // auto, cpu, cuda
  std::string dtype;                       // fp32 or bf16; empty: the device's default
  std::string cuda_graph;                  // auto, on, off
  bool deterministic = false;              // only algorithms that give the same bits each time
  std::int64_t micro_batch_sequences = 0;  // compute.micro_batch_sequences; 0: the whole local batch at once
  std::string initial_weights;             // folder of an exported model; empty: random weights
  std::string transport;                   // gloo, nccl, auto
  std::string on_divergence;               // stop, skip_step
  double timeout_s = 0;
  std::string on_lost_site;         // stop, wait, drop; empty: not given, and the scenario has no [failures]
  bool on_lost_site_given = false;  // in [trainer], not in [failures]
  double lost_site_timeout_s = 0;   // time for which `wait` waits
  double drop_after_s = 0;          // time after which `drop` goes on without a lost site
};

}  // namespace fomoe::scenario
