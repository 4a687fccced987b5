#include "experiments/text/suggest.hpp"

#include <algorithm>
#include <filesystem>

namespace fomoe::scenario {

int edit_distance(std::string_view a, std::string_view b) {
  const std::size_t rows = a.size() + 1, columns = b.size() + 1;
  std::vector<int> cost(rows * columns);
  const auto at = [&](std::size_t i, std::size_t j) -> int& { return cost[i * columns + j]; };
  for (std::size_t i = 0; i < rows; ++i) at(i, 0) = static_cast<int>(i);
  for (std::size_t j = 0; j < columns; ++j) at(0, j) = static_cast<int>(j);
  for (std::size_t i = 1; i < rows; ++i) {
    for (std::size_t j = 1; j < columns; ++j) {
      const int substitution = at(i - 1, j - 1) + (a[i - 1] == b[j - 1] ? 0 : 1);
      at(i, j) = std::min({at(i - 1, j) + 1, at(i, j - 1) + 1, substitution});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        at(i, j) = std::min(at(i, j), at(i - 2, j - 2) + 1);
      }
    }
  }
  return cost.back();
}

std::string nearest(std::string_view typed, const std::vector<std::string>& candidates) {
  // At most a third of the letters may differ; a more distant suggestion would only distract.
  int best = std::max(1, static_cast<int>(typed.size()) / 3) + 1;
  std::string found;
  for (const std::string& candidate : candidates) {
    // The distance is at least the difference of the lengths. A text of many megabytes is not compared.
    const std::size_t longer =
        std::max(typed.size(), candidate.size()) - std::min(typed.size(), candidate.size());
    if (longer >= static_cast<std::size_t>(best)) continue;
    const int distance = edit_distance(typed, candidate);
    if (distance < best) {
      best = distance;
      found = candidate;
    }
  }
  return found;
}

std::string usual_name(std::string_view typed, const std::vector<std::string>& known) {
  struct Synonym {
    std::string_view other, own;
  };
  static constexpr Synonym kSynonyms[] = {
      {"batch_size", "global_batch_sequences"},
      {"global_batch_size", "global_batch_sequences"},
      {"batch_tokens", "global_batch_tokens"},
      {"total_tokens", "tokens"},
      {"K", "local_steps"},
      {"H", "local_steps"},
      {"inner_steps", "local_steps"},
      {"sync_every", "local_steps"},
      {"algorithm", "method"},
      {"dtype", "payload_dtype"},
      {"precision", "payload_dtype"},
      {"O_e", "expert_overlap"},
      {"overlap", "expert_overlap"},
      {"topology", "collective"},
      {"gpu", "accelerator"},
      {"gpu_type", "accelerator"},
      {"device", "accelerator"},
      {"gpus", "gpus_per_site"},
      {"num_gpus", "gpus_per_site"},
      {"memory", "gpu_memory"},
      {"micro_batch_size", "micro_batch_sequences"},
      {"gradient_checkpointing", "activation_checkpointing"},
      {"fsdp", "sharded"},
      {"utilization", "mfu"},
      {"regions", "use_sites"},
      {"names", "use_sites"},
      {"num_sites", "sites"},
      {"speed", "bandwidth"},
      {"rtt", "latency"},
      {"gpu_price", "gpu_hour"},
      {"price", "gpu_hour"},
      {"gpu_cost", "gpu_hour"},
      {"model", "preset"},
      {"config", "hf_config"},
      {"hidden_size", "d_model"},
      {"num_layers", "layers"},
      {"n_layers", "layers"},
      {"num_experts", "experts"},
      {"top_k", "active_experts"},
      {"num_heads", "heads"},
      {"vocab_size", "vocabulary"},
      {"context_length", "sequence_length"},
      {"seq_len", "sequence_length"},
      {"lr", "learning_rate"},
  };
  for (const Synonym& synonym : kSynonyms) {
    if (synonym.other == typed && std::find(known.begin(), known.end(), synonym.own) != known.end())
      return std::string(synonym.own);
  }
  return "";
}

std::string nearby_file(const std::string& path, const std::string& written) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  std::vector<std::string> names;
  const fs::path folder = fs::path(path).parent_path();
  for (const auto& entry : fs::directory_iterator(folder.empty() ? "." : folder, ignored)) {
    if (entry.path().extension() == fs::path(path).extension())
      names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  const std::string found = nearest(fs::path(path).filename().string(), names);
  return found.empty() ? "" : (fs::path(written).parent_path() / found).string();
}

std::string joined(const std::vector<std::string>& words, std::string_view separator) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += separator;
    text += word;
  }
  return text;
}

}  // namespace fomoe::scenario
