#include "experiments/step_profiles/logs/log_reader.hpp"

namespace fomoe::step_profiles {
namespace {

constexpr LogFormat kFormats[] = {
    {"torchtitan",
     "lines with `step:` and `tps:`, or `wps:` in older versions (tokens per second and GPU, mean of the "
     "steps since the previous line)",
     "tps: ",
     "[titan] 2025-01-31 12:00:00,000 - root - INFO - step: 10  loss:  6.1384  memory: 49.66GiB(52.28%)  "
     "tps: 5,856",
     read_torchtitan},
    {"megatron",
     "lines of Megatron-LM and Megatron-DeepSpeed with `elapsed time per iteration (ms):` or `(s):` (mean of "
     "the iterations since the previous line)",
     "elapsed time per iteration (",
     " iteration      122/  250000 | elapsed time per iteration (ms): 86545.2 | global batch size:  1024 |",
     read_megatron},
    {"nemo", "lines with `train_step_timing in s`", "train_step_timing in s",
     "Training epoch 0, iteration 45/99 | global_batch_size: 128 | train_step_timing in s: 6.08 |",
     read_nemo},
    {"nanotron",
     "lines with `elapsed_time_per_iteration_ms:`, or `time_per_iteration_ms:` in newer versions (written "
     "with three digits)",
     "time_per_iteration_ms:",
     "iteration: 992 / 1000 | elapsed_time_per_iteration_ms: 11.5K | global_batch_size: 64 |", read_nanotron},
    {"maxtext",
     "lines with `completed step:` and `seconds:`; the first two of a run are not step times, because they "
     "are dispatched asynchronously",
     "completed step: ",
     "completed step: 3, seconds: 5.402, TFLOP/s/device: 141.542, Tokens/s/device: 9098.189, total_weights: "
     "196608",
     read_maxtext},
    {"olmo-core", "lines with `[step=`, each followed by one with `throughput/device/TPS=`",
     "throughput/device/TPS=", "throughput/device/TPS=258,163", read_olmo_core},
    {"kineto",
     "a Kineto or Chrome trace (.json); a step lasts from the start of a ProfilerStep# span to the start of "
     "the next; spans of the GPU are preferred",
     "ProfilerStep#", R"({"ph": "X", "name": "ProfilerStep#3", "ts": 1000.0, "dur": 420000.0})", read_kineto},
    {"csv",
     "a header with step_s, or with forward_s, backward_s and optimizer_s; also sequences and local_experts "
     "if they vary; --column names the columns of other tables, such as exports of wandb and TensorBoard",
     "step_s", "step_s,sequences", read_csv},
};

}  // namespace

std::span<const LogFormat> log_formats() { return kFormats; }

std::string_view example_of(std::string_view format) {
  for (const LogFormat& known : kFormats) {
    if (known.name == format) return known.example;
  }
  return {};
}

}  // namespace fomoe::step_profiles
