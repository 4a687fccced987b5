#include "trainer/whole/gathering.hpp"

#include <algorithm>

namespace fomoe::trainer {
namespace {

using costmodel::NodeId;
using costmodel::NodeKind;

constexpr int kChannel = kChannels;  // transfers of a plan use the channels below

bool is_absent(const std::vector<bool>& absent, NodeId node) {
  return !absent.empty() && absent[static_cast<std::size_t>(node)];
}

/// The first owner of the expert that is present; −1: none.
NodeId first_owner(const costmodel::Placement& placement, int layer, int expert,
                   const std::vector<bool>& absent) {
  for (const NodeId owner : placement.owners(layer, expert)) {
    if (!is_absent(absent, owner)) return owner;
  }
  return -1;
}

/// What a node sends to the first worker.
struct Sending {
  ExpertChoice experts;  // by layer
  bool dense = false;    // also the parameters that every node has
};

/// Only the experts whose first owner is the node, or all that it has.
Sending sent_by(const costmodel::Placement& placement, NodeId node, bool skip_token,
                const std::vector<bool>& absent, bool all) {
  Sending out{{}, all};
  out.experts.skip_token = skip_token;
  for (int layer = 0; layer < placement.layers(); ++layer) {
    out.experts.local.emplace_back();
    for (const int expert : placement.local_experts(layer, node)) {
      if (all || first_owner(placement, layer, expert, absent) == node)
        out.experts.local.back().push_back(expert);
    }
  }
  return out;
}

/// The tensors that are sent; those with a row or column for each expert are cut to the chosen experts. A
/// layer may have none.
std::vector<ParameterSpec> specs_of(const costmodel::ModelShape& shape, const Sending& sent) {
  std::vector<ParameterSpec> out;
  for (ParameterSpec& spec : parameter_specs(shape, {{}, sent.experts.skip_token})) {
    const std::int64_t dim = expert_dim(spec, sent.experts.skip_token);
    if (dim >= 0) {
      const std::size_t count = sent.experts.local[static_cast<std::size_t>(spec.layer)].size();
      if (count == 0) continue;
      spec.sizes[static_cast<std::size_t>(dim)] = static_cast<std::int64_t>(count);
    } else if (!sent.dense) {
      continue;
    }
    out.push_back(std::move(spec));
  }
  return out;
}

at::Tensor packed(const Model& model, const Sending& sent) {
  std::vector<at::Tensor> parts;
  const ExpertChoice& held = model.options().experts;
  for (const ParameterSpec& spec : specs_of(model.shape(), sent)) {
    const auto parameter = std::find_if(model.parameters().begin(), model.parameters().end(),
                                        [&](const Parameter& one) { return one.spec.name() == spec.name(); });
    const at::Tensor master = parameter->master.detach();
    const std::int64_t dim = expert_dim(spec, sent.experts.skip_token);
    if (dim < 0) {
      parts.push_back(master.to(at::kCPU).flatten());
      continue;
    }
    const std::vector<int> local = local_experts(model.shape(), held, spec.layer);
    std::vector<std::int64_t> rows;
    for (const int expert : sent.experts.local[static_cast<std::size_t>(spec.layer)])
      rows.push_back(std::lower_bound(local.begin(), local.end(), expert) - local.begin());
    parts.push_back(master.to(at::kCPU).index_select(dim, at::tensor(rows, at::kLong)).flatten());
  }
  return at::cat(parts).view(at::kByte);
}

std::vector<std::pair<std::string, at::Tensor>> unpacked(const at::Tensor& bytes, at::ScalarType dtype,
                                                         const costmodel::ModelShape& shape,
                                                         const Sending& sent) {
  std::vector<std::pair<std::string, at::Tensor>> out;
  const at::Tensor values = bytes.view(dtype);
  std::int64_t begin = 0;
  for (const ParameterSpec& spec : specs_of(shape, sent)) {
    out.emplace_back(spec.name(), values.narrow(0, begin, spec.elements()).view(spec.sizes));
    begin += spec.elements();
  }
  return out;
}

}  // namespace

costmodel::Placement owners_after(const costmodel::Plan& plan, const costmodel::ModelShape& model,
                                  std::int64_t rounds) {
  if (plan.placement) return plan.placement(rounds);
  const auto nodes = static_cast<int>(plan.nodes.size());
  return costmodel::fixed_placement(static_cast<int>(model.layers), static_cast<int>(model.experts), nodes,
                                    nodes);
}

std::vector<std::pair<int, int>> experts_without_owner(const costmodel::Placement& placement,
                                                       const std::vector<bool>& absent) {
  std::vector<std::pair<int, int>> out;
  for (int layer = 0; layer < placement.layers(); ++layer) {
    for (int expert = 0; expert < placement.experts(); ++expert) {
      if (first_owner(placement, layer, expert, absent) < 0) out.emplace_back(layer, expert);
    }
  }
  return out;
}

std::optional<WholeModel> gather_whole(Executor& executor, Transport& transport,
                                       const costmodel::Placement& placement, const std::vector<bool>& absent,
                                       bool sites_differ) {
  const at::NoGradGuard no_grad;
  std::vector<NodeId> workers;
  for (NodeId node = 0; node < static_cast<NodeId>(transport.nodes().size()); ++node) {
    if (transport.nodes()[static_cast<std::size_t>(node)].kind == NodeKind::worker &&
        !is_absent(absent, node))
      workers.push_back(node);
  }
  const NodeId home = workers.front();
  if (executor.hosted().empty()) return std::nullopt;
  const Model& any = executor.worker(executor.hosted().front()).model();
  const bool skip_token = any.options().experts.skip_token;
  const at::ScalarType dtype = any.parameters().front().master.scalar_type();

  std::vector<Message> messages;
  for (const NodeId node : workers) {
    if (node == home || (!transport.hosts(node) && !transport.hosts(home))) continue;
    const Sending sent = sent_by(placement, node, skip_token, absent, sites_differ);
    std::int64_t elements = 0;
    for (const ParameterSpec& spec : specs_of(any.shape(), sent)) elements += spec.elements();
    if (elements == 0) continue;
    Message message;
    message.from = node;
    message.to = home;
    message.counted = false;
    message.bytes_of[0] = elements * static_cast<std::int64_t>(c10::elementSize(dtype));
    if (transport.hosts(node)) message.sent = packed(executor.worker(node).model(), sent);
    messages.push_back(std::move(message));
  }
  transport.exchange(messages, kChannel);
  if (!transport.hosts(home)) return std::nullopt;

  Assembly assembly(any.shape(), skip_token);
  std::vector<std::pair<std::string, at::Tensor>> own;
  const Model& model = executor.worker(home).model();
  for (const Parameter& parameter : model.parameters())
    own.emplace_back(parameter.spec.name(), parameter.master.detach());
  assembly.add(model.options().experts, own);
  for (const Message& message : messages) {
    const Sending sent = sent_by(placement, message.from, skip_token, absent, sites_differ);
    assembly.add(sent.experts, unpacked(message.received, dtype, any.shape(), sent));
  }
  WholeModel whole = assembly.finish();
  whole.constants = any.options().constants;
  return whole;
}

}  // namespace fomoe::trainer
