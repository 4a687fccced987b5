// Logs of torchtitan. Names of the facts changed between its versions: "GPU capacity", then "CUDA capacity";
// wps (words per second), then tps; "Training starts at step 1, with local batch size …", then "Trainer is
// initialized with local batch size …".
#include <fmt/format.h>

#include "experiments/step_profiles/logs/log_text.hpp"
#include "experiments/step_profiles/logs/runs.hpp"

namespace fomoe::step_profiles {
namespace {

/// The words in "['dp_shard', 'tp'], [2, 4]" or "('dp',), [8]".
std::vector<std::string> quoted_words(std::string_view text) {
  std::vector<std::string> words;
  for (std::size_t at = text.find('\''); at != std::string_view::npos; at = text.find('\'', at)) {
    const std::size_t end = text.find('\'', at + 1);
    if (end == std::string_view::npos) break;
    words.emplace_back(text.substr(at + 1, end - at - 1));
    at = end + 1;
  }
  return words;
}

/// Expert parallelism uses the GPUs of the other dimensions, so that ep and etp are no factors.
void state_degree(const std::string& name, std::int64_t degree, StatedFacts& stated, std::int64_t& gpus) {
  if (name == "ep" || name == "etp") return;
  gpus *= degree;
  if (name == "tp") stated.tensor_parallel = degree;
  if (name == "pp") stated.pipeline_parallel = degree;
  if (name == "cp") stated.context_parallel = degree;
}

/// "parallelism: pp=1, dp_replicate=1, dp_shard=8, cp=1, tp=2, ep=4", or names and sizes in two lists.
void read_mesh(std::string_view mesh, StatedFacts& stated) {
  std::int64_t gpus = 1;
  bool any = false;
  if (mesh.starts_with("parallelism:")) {
    for (std::size_t at = mesh.find('='); at != std::string_view::npos; at = mesh.find('=', at + 1)) {
      const auto degree = leading_count(mesh.substr(at + 1));
      if (!degree) continue;
      const std::size_t begin = mesh.find_last_of(" :", at) + 1;
      state_degree(std::string(mesh.substr(begin, at - begin)), *degree, stated, gpus);
      any = true;
    }
  } else if (const std::size_t sizes = mesh.rfind('['); sizes != std::string_view::npos && sizes > 0) {
    const std::vector<std::string> names = quoted_words(mesh.substr(0, sizes));
    std::size_t at = sizes + 1;
    for (std::size_t i = 0; at < mesh.size(); ++i) {
      const auto degree = leading_count(mesh.substr(at));
      if (!degree) break;
      state_degree(i < names.size() ? names[i] : "", *degree, stated, gpus);
      any = true;
      at = std::min(mesh.find(", ", at), mesh.size() - 2) + 2;
    }
  }
  if (any) stated.gpus = gpus;
}

void read_batch(std::string_view line, StatedFacts& stated) {
  stated.micro_batch_sequences = count_after(line, "local batch size ");
  stated.sequences_per_step = count_after(line, "global batch size ");
  stated.accumulation_steps = count_after(line, "gradient accumulation steps ");
  if (!stated.accumulation_steps)
    stated.accumulation_steps = count_after(line, "gradient_accumulation_steps: ");
  stated.sequence_length = count_after(line, "sequence length ");
}

/// "size: 8,030,261,248 total parameters", or "Total parameter count: dense 8,767,123,696, sparse …".
void read_parameters(std::string_view line, StatedFacts& stated) {
  std::int64_t total = 0;
  if (line.find(" total parameters") != std::string_view::npos)
    total = count_after(line, " size: ").value_or(0);
  if (const auto counts = text_after(line, "Total parameter count: "))
    total = count_after(*counts, "dense ").value_or(0) + count_after(*counts, "sparse ").value_or(0);
  if (total > 0) stated.parameters = {static_cast<double>(total), 0};
}

StatedFacts torchtitan_facts(const std::string& line) {
  StatedFacts stated;
  for (const char* kind : {"CUDA capacity: ", "GPU capacity: ", "HIP capacity: ", "XPU capacity: "}) {
    const auto device = text_after(line, kind);
    if (!device) continue;
    std::string name(device->substr(0, device->find(" with ")));
    if (const std::size_t index = name.find(" ("); index != std::string::npos) name.resize(index);
    stated.device_name = name;
  }
  if (const auto mesh = text_after(line, "device mesh with ")) read_mesh(*mesh, stated);
  if (line.find("local batch size ") != std::string::npos) read_batch(line, stated);
  read_parameters(line, stated);
  if (line.find("activation checkpointing to the model") != std::string::npos) {
    const bool full =
        line.find("Applied full") != std::string::npos || line.find("FullAC") != std::string::npos;
    stated.recomputation = full ? costmodel::Recomputation::full : costmodel::Recomputation::selective;
  }
  return stated;
}

}  // namespace

std::vector<Log> read_torchtitan(const std::string& path, const std::string& text, const Columns&) {
  Runs runs;
  const std::string example(example_of("torchtitan"));
  for_each_line(text, [&](const std::string& line, std::int64_t number) {
    runs.add(number, torchtitan_facts(line));
    const auto step_number = word_after(line, "step:");
    const bool older = line.find(" tps:") == std::string::npos;
    const auto rate = word_after(line, older ? " wps:" : " tps:");
    if (!step_number || !rate || line.find("validate step:") != std::string::npos) return;
    const std::string place = fmt::format("{}:{}", path, number);
    LoggedStep step;
    step.line = number;
    step.number = logged_count(*step_number, place, "step:", example);
    step.tokens_per_gpu_s = logged_number(*rate, place, older ? "wps:" : "tps:", example);
    runs.add(step);
    // The peak of what the allocator reserved since the previous line.
    if (const auto memory = text_after(line, " memory:")) {
      if (const auto bytes = logged_bytes(*memory, 1))
        runs.add_memory(costmodel::MemoryCounter::reserved, *bytes);
    }
  });
  std::vector<Log> logs = runs.take();
  for (Log& log : logs) {
    // Activation checkpointing is logged before the batch, if there is any.
    if (log.stated.micro_batch_sequences && !log.stated.recomputation)
      log.stated.recomputation = costmodel::Recomputation::none;
  }
  return logs;
}

}  // namespace fomoe::step_profiles
