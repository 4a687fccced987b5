#include <fmt/format.h>

#include <set>

#include "experiments/step_profiles/log_reader.hpp"
#include "experiments/step_profiles/log_text.hpp"

namespace fomoe::step_profiles {
namespace {

constexpr LogFormat kFormats[] = {
    {"torchtitan",
     "lines with `step:` and `tps:` (tokens per second and GPU, mean of the steps since the previous line)",
     "tps: ",
     "[titan] 2025-01-31 12:00:00,000 - root - INFO - step: 10  loss:  6.1384  memory: 49.66GiB(52.28%)  "
     "tps: 5,856",
     read_torchtitan},
    {"megatron",
     "Megatron-LM's lines with `elapsed time per iteration (ms):` (mean of the iterations since the previous "
     "line)",
     "elapsed time per iteration (ms):",
     " iteration      122/  250000 | elapsed time per iteration (ms): 86545.2 | global batch size:  1024 |",
     read_megatron},
    {"nanotron", "lines with `elapsed_time_per_iteration_ms:` (written with three digits)",
     "elapsed_time_per_iteration_ms:",
     "iteration: 992 / 1000 | elapsed_time_per_iteration_ms: 11.5K | global_batch_size: 64 |", read_nanotron},
    {"kineto",
     "a Kineto or Chrome trace (.json); a step lasts from the start of a ProfilerStep# span to the start of "
     "the next; spans of the GPU are preferred",
     "ProfilerStep#", R"({"ph": "X", "name": "ProfilerStep#3", "ts": 1000.0, "dur": 420000.0})", read_kineto},
    {"csv",
     "a header with step_s, or with forward_s, backward_s and optimizer_s; also sequences and local_experts "
     "if they vary",
     "step_s", "step_s,sequences", read_csv},
};

/// Several ranks may log the same step; only the first line of each step counts.
class FirstOfEach {
 public:
  bool operator()(std::int64_t step) { return seen_.insert(step).second; }

 private:
  std::set<std::int64_t> seen_;
};

/// Common part of Megatron and nanotron: times in milliseconds, and the batch size over all GPUs.
struct IterationLabels {
  const char *iteration, *milliseconds, *batch, *example;
};

Log read_iterations(const std::string& path, const std::string& text, const IterationLabels& labels) {
  Log log;
  FirstOfEach first;
  for_each_line(text, [&](const std::string& line, std::int64_t number) {
    const auto iteration = word_after(line, labels.iteration);
    const auto elapsed = word_after(line, labels.milliseconds);
    if (!iteration || !elapsed) return;
    const std::string place = fmt::format("{}:{}", path, number);
    if (!first(logged_count(*iteration, place, labels.iteration, labels.example))) return;
    LoggedStep step;
    step.line = number;
    step.seconds = 1e-3 * logged_number(*elapsed, place, labels.milliseconds, labels.example);
    if (const auto batch = word_after(line, labels.batch))
      step.sequences = logged_count(*batch, place, labels.batch, labels.example);
    log.steps.push_back(step);
  });
  return log;
}

}  // namespace

std::span<const LogFormat> log_formats() { return kFormats; }

Log read_torchtitan(const std::string& path, const std::string& text) {
  Log log;
  FirstOfEach first;
  const std::string example(kFormats[0].example);
  for_each_line(text, [&](const std::string& line, std::int64_t number) {
    const auto step_number = word_after(line, "step:");
    const auto rate = word_after(line, " tps:");
    if (!step_number || !rate || line.find("validate step:") != std::string::npos) return;
    const std::string place = fmt::format("{}:{}", path, number);
    if (!first(logged_count(*step_number, place, "step:", example))) return;
    LoggedStep step;
    step.line = number;
    step.tokens_per_gpu_s = logged_number(*rate, place, "tps:", example);
    log.steps.push_back(step);
  });
  return log;
}

Log read_megatron(const std::string& path, const std::string& text) {
  return read_iterations(
      path, text,
      {"iteration ", "elapsed time per iteration (ms):", "global batch size:", kFormats[1].example.data()});
}

Log read_nanotron(const std::string& path, const std::string& text) {
  return read_iterations(
      path, text,
      {"iteration:", "elapsed_time_per_iteration_ms:", "global_batch_size:", kFormats[2].example.data()});
}

}  // namespace fomoe::step_profiles
