#include <fmt/format.h>

#include <set>

#include "experiments/step_profiles/log_reader.hpp"
#include "experiments/step_profiles/log_text.hpp"
#include "platforms/support/parse_number.hpp"

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

/// The whole number at the start of the text; empty if there is none.
std::optional<std::int64_t> leading_count(std::string_view text) {
  const auto value = parse_leading_number<std::int64_t>(text);
  return value && *value >= 1 ? value : std::nullopt;
}

/// The text after `label`; empty if the line does not contain the label.
std::optional<std::string_view> text_after(std::string_view line, std::string_view label) {
  const std::size_t at = line.find(label);
  if (at == std::string_view::npos) return std::nullopt;
  return line.substr(at + label.size());
}

/// The product of the numbers in "[2, 4]" or in "pp=1, dp_shard=8, tp=2, ep=4". Expert parallelism (ep) uses
/// the GPUs of the other dimensions.
std::optional<std::int64_t> mesh_size(std::string_view text) {
  std::int64_t product = 1;
  bool any = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool starts = text[at] >= '0' && text[at] <= '9' && at > 0 &&
                        (text[at - 1] == '=' || text[at - 1] == ' ' || text[at - 1] == '[');
    if (!starts || (at >= 3 && text.substr(at - 3, 3) == "ep=")) continue;
    product *= leading_count(text.substr(at)).value_or(1);
    any = true;
  }
  return any ? std::optional(product) : std::nullopt;
}

/// Facts in the lines that torchtitan logs before the first step.
void read_torchtitan_facts(const std::string& line, StatedFacts& stated) {
  if (const auto device = text_after(line, "CUDA capacity: "))
    stated.device_name = std::string(device->substr(0, device->find(" with ")));
  if (const auto mesh = text_after(line, "device mesh with ")) {
    const auto sizes = mesh->starts_with("parallelism:") ? mesh : text_after(*mesh, "], ");
    if (sizes)
      if (const auto gpus = mesh_size(*sizes)) stated.gpus = gpus;
  }
  if (const auto batch = text_after(line, "global batch size "))
    stated.sequences_per_step = leading_count(*batch);
  if (const auto length = text_after(line, "sequence length "))
    stated.sequence_length = leading_count(*length);
  if (line.find("activation checkpointing to the model") != std::string::npos) {
    const bool full = line.find("Applied full") != std::string::npos;
    stated.recomputation = full ? costmodel::Recomputation::full : costmodel::Recomputation::selective;
  } else if (line.find("Trainer is initialized with") != std::string::npos && !stated.recomputation) {
    stated.recomputation = costmodel::Recomputation::none;  // it was to be logged before
  }
}

/// Facts in the list of arguments that Megatron-LM prints, one in each line with dots after its name.
void read_megatron_facts(const std::string& line, StatedFacts& stated) {
  const auto value_of = [&](std::string_view name) -> std::optional<std::string_view> {
    const auto dots = text_after(line, std::string(name) + " ..");
    if (!dots) return std::nullopt;
    const std::size_t at = dots->find_first_not_of('.');
    if (at == std::string_view::npos || (*dots)[at] != ' ') return std::nullopt;
    return dots->substr(at + 1);
  };
  if (const auto value = value_of(" world_size")) stated.gpus = leading_count(*value);
  if (const auto value = value_of(" seq_length")) stated.sequence_length = leading_count(*value);
  if (const auto value = value_of(" recompute_granularity")) {
    stated.recomputation = value->starts_with("full")        ? costmodel::Recomputation::full
                           : value->starts_with("selective") ? costmodel::Recomputation::selective
                                                             : costmodel::Recomputation::none;
  }
}

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
  bool arguments;  // whether the log may list the program's arguments as Megatron-LM does
};

Log read_iterations(const std::string& path, const std::string& text, const IterationLabels& labels) {
  Log log;
  FirstOfEach first;
  for_each_line(text, [&](const std::string& line, std::int64_t number) {
    if (labels.arguments) read_megatron_facts(line, log.stated);
    const auto iteration = word_after(line, labels.iteration);
    const auto elapsed = word_after(line, labels.milliseconds);
    if (!iteration || !elapsed) return;
    const std::string place = fmt::format("{}:{}", path, number);
    if (!first(logged_count(*iteration, place, labels.iteration, labels.example))) return;
    LoggedStep step;
    step.line = number;
    step.number = logged_count(*iteration, place, labels.iteration, labels.example);
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
    read_torchtitan_facts(line, log.stated);
    const auto step_number = word_after(line, "step:");
    const auto rate = word_after(line, " tps:");
    if (!step_number || !rate || line.find("validate step:") != std::string::npos) return;
    const std::string place = fmt::format("{}:{}", path, number);
    LoggedStep step;
    step.line = number;
    step.number = logged_count(*step_number, place, "step:", example);
    if (!first(step.number)) return;
    step.tokens_per_gpu_s = logged_number(*rate, place, "tps:", example);
    log.steps.push_back(step);
  });
  return log;
}

Log read_megatron(const std::string& path, const std::string& text) {
  return read_iterations(path, text,
                         {"iteration ", "elapsed time per iteration (ms):", "global batch size:",
                          kFormats[1].example.data(), true});
}

Log read_nanotron(const std::string& path, const std::string& text) {
  return read_iterations(path, text,
                         {"iteration:", "elapsed_time_per_iteration_ms:", "global_batch_size:",
                          kFormats[2].example.data(), false});
}

}  // namespace fomoe::step_profiles
