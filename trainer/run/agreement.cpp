#include "trainer/run/agreement.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "experiments/results/json_values.hpp"
#include "trainer/execution/checkpoint_header.hpp"
#include "trainer/io/hash.hpp"
#include "trainer/run/commit.hpp"

namespace fomoe::trainer {
namespace {

using nlohmann::ordered_json;

std::string hash(const std::string& text) {
  Hash value;
  value.add(text.data(), text.size());
  return value.text();
}

std::string value_text(const ordered_json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

void add_table(Digest& digest, const std::string& table, const ordered_json& values) {
  for (const auto& [key, value] : values.items()) digest.emplace_back(table + "." + key, value_text(value));
}

std::string work_text(const costmodel::Plan& plan) {
  std::ostringstream out;
  for (const costmodel::Node& node : plan.nodes)
    out << node.site << ' ' << static_cast<int>(node.kind) << ' ' << node.sequences << ';';
  return out.str();
}

// Who averages with whom, whatever the order of the sums. Of a reduction, the first node is the receiver.
std::string partners_text(const costmodel::Plan& plan) {
  std::ostringstream out;
  for (const costmodel::Op& op : plan.round(0).ops) {
    out << op.name;
    const auto* transfer = std::get_if<costmodel::Transfer>(&op.what);
    if (transfer == nullptr) continue;
    out << ' ' << static_cast<int>(transfer->pattern);
    std::vector<std::vector<costmodel::NodeId>> exchanges;
    for (const costmodel::Exchange& exchange : transfer->exchanges) {
      std::vector<costmodel::NodeId>& nodes = exchanges.emplace_back(exchange.nodes);
      const bool ordered = transfer->pattern == costmodel::Pattern::point_to_point ||
                           transfer->pattern == costmodel::Pattern::reduce;
      std::sort(nodes.begin() + (ordered && !nodes.empty() ? 1 : 0), nodes.end());
    }
    std::sort(exchanges.begin(), exchanges.end());
    for (const std::vector<costmodel::NodeId>& nodes : exchanges) {
      out << ':';
      for (const costmodel::NodeId node : nodes) out << node << ' ';
    }
  }
  return out.str();
}

// Who sends to whom, in the order of the sums: the order of a ring may follow from the links.
std::string order_text(const costmodel::Plan& plan) {
  std::ostringstream out;
  for (const costmodel::Op& op : plan.round(0).ops) {
    out << op.name;
    const auto* transfer = std::get_if<costmodel::Transfer>(&op.what);
    if (transfer == nullptr) continue;
    for (const costmodel::Exchange& exchange : transfer->exchanges) {
      out << ':';
      for (const costmodel::NodeId node : exchange.nodes) out << node << ' ';
    }
  }
  return out.str();
}

}  // namespace

Digest determines_weights(const RunRequest& request, const costmodel::Plan& plan,
                          const TrainingOptions& options, const std::string& data,
                          const std::optional<Corpus>& validation_corpus) {
  const ordered_json scenario = scenario::to_json(request.scenario);
  Digest digest = {{"seed", std::to_string(request.scenario.seed)}};
  add_table(digest, "model", scenario.at("model"));
  digest.emplace_back("workload.global_batch_sequences",
                      std::to_string(request.scenario.workload.global_batch_sequences));
  add_table(digest, "strategy", scenario.at("strategy"));
  digest.emplace_back("platform.sites", std::to_string(request.scenario.sites()));
  digest.emplace_back(kWork, hash(work_text(plan) + partners_text(plan)));
  for (const auto& [name, value] : scenario::weight_settings(request.settings))
    digest.emplace_back(name, value);
  // Only where sites have other numbers than [compute], so that older checkpoints of all others can be used.
  const auto own = [&](const costmodel::SiteCompute& site) {
    return site.gpus.micro_batch_sequences != request.settings.micro_batch_sequences;
  };
  const std::vector<costmodel::SiteCompute>& sites = request.scenario.site_compute;
  if (std::any_of(sites.begin(), sites.end(), own)) {
    std::string all;
    for (const costmodel::SiteCompute& site : sites)
      all += (all.empty() ? "" : ", ") + std::to_string(site.gpus.micro_batch_sequences);
    digest.emplace_back("compute.micro_batch_sequences of each site", all);
  }
  digest.emplace_back("trainer.dtype", c10::toString(options.dtype));
  digest.emplace_back(kTrainingData, data);
  digest.emplace_back(kValidationData, validation_corpus ? hash_of(*validation_corpus) : kEndOfData);
  digest.emplace_back("--paced", request.paced ? "yes" : "no");
  return digest;
}

void set_data(Digest& digest, const std::string& data) {
  for (auto& [name, value] : digest)
    if (name == kTrainingData) value = data;
}

Digest shared_by_processes(const RunRequest& request, const costmodel::Plan& plan,
                           const Digest& determines_weights) {
  Digest digest = determines_weights;
  digest.emplace_back("the order of transfers", hash(order_text(plan)));
  digest.emplace_back("workload.tokens", std::to_string(request.scenario.workload.tokens));
  digest.emplace_back("trainer.transport", request.settings.transport);
  digest.emplace_back("network_model.streams", std::to_string(request.scenario.network.streams));
  digest.emplace_back("trainer.validation_rounds", std::to_string(request.settings.validation_rounds));
  digest.emplace_back("the version of fomoe-train", code_version());
  return digest;
}

std::string code_version() { return std::string(FOMOE_VERSION) + ", " + FOMOE_COMMIT; }

// The names of files relative to the corpus, their numbers of tokens, and tokens at evenly spaced positions.
std::string hash_of(const Corpus& corpus) {
  Hash value;
  for (const Corpus::File& file : corpus.files()) {
    const std::int64_t size = file.tokens.size();
    value.add(file.name.data(), file.name.size());
    value.add(&size, sizeof size);
  }
  const std::vector<std::int64_t> ids = corpus.sample();
  value.add(ids.data(), ids.size() * sizeof ids.front());
  return std::to_string(corpus.size()) + " tokens " + value.text();
}

std::string hash_of(const WholeModel& whole) {
  Hash value;
  for (const auto& [name, tensor] : whole.tensors) value.add(tensor);
  return value.text();
}

Digest weight_hashes(Executor& executor) {
  std::map<std::string, std::string> hashes;
  // A process may host several sites, which hold the same parameters.
  const auto add = [&](const std::string& name, const Hash& hash) {
    const auto [known, added] = hashes.try_emplace(name, hash.text());
    if (!added && known->second != hash.text()) known->second += " and " + hash.text();
  };
  for (const costmodel::NodeId node : executor.hosted()) {
    // A server keeps more digits than it sends to the sites.
    if (!executor.is_worker(node)) continue;
    const Model& model = executor.worker(node).model();
    const ExpertChoice& held = model.options().experts;
    Hash dense;
    std::map<std::pair<std::int64_t, int>, Hash> experts;  // by layer and expert
    for (const Parameter& parameter : model.parameters()) {
      const std::int64_t dim = expert_dim(parameter.spec, held.skip_token);
      if (dim < 0) {
        dense.add(parameter.master);
        continue;
      }
      const std::vector<int> local = local_experts(model.shape(), held, parameter.spec.layer);
      for (std::size_t row = 0; row < local.size(); ++row) {
        experts[{parameter.spec.layer, local[row]}].add(
            parameter.master.select(dim, static_cast<std::int64_t>(row)));
      }
    }
    add("the dense parameters", dense);
    for (const auto& [which, hash] : experts)
      add("expert " + std::to_string(which.second) + " of layer " + std::to_string(which.first), hash);
  }
  return {hashes.begin(), hashes.end()};
}

std::string disagreement(const std::vector<Digest>& all, const std::vector<std::string>& names) {
  std::map<std::string, std::pair<std::string, std::size_t>> first;  // by name: the value, and who had it
  for (std::size_t process = 0; process < all.size(); ++process) {
    for (const auto& [name, value] : all[process]) {
      const auto [known, added] = first.try_emplace(name, value, process);
      if (!added && known->second.first != value)
        return names[process] + " differs from " + names[known->second.second] + " in " + name;
    }
  }
  return {};
}

}  // namespace fomoe::trainer
