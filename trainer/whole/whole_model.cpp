#include "trainer/whole/whole_model.hpp"

#include <algorithm>
#include <set>
#include <stdexcept>

namespace fomoe::trainer {
namespace {

std::string place_of(const ParameterSpec& spec, std::size_t expert) {
  return "expert " + std::to_string(expert) + " of layer " + std::to_string(spec.layer);
}

}  // namespace

Assembly::Assembly(const costmodel::ModelShape& shape, bool skip_token) {
  whole_.shape = shape;
  whole_.skip_token = skip_token;
  whole_.experts.assign(static_cast<std::size_t>(shape.layers),
                        std::vector<ExpertSteps>(static_cast<std::size_t>(shape.experts)));
  for (ParameterSpec& spec : parameter_specs(shape, {{}, skip_token})) specs_.emplace(spec.name(), spec);
}

void Assembly::add_to_mean(const std::string& name, at::Tensor mean, const at::Tensor& values, int before) {
  if (before == 0) {
    mean.copy_(values);
    return;
  }
  if (at::equal(mean, values)) return;
  if (whole_.averaged.empty() || whole_.averaged.back() != name) whole_.averaged.push_back(name);
  mean.add_(values - mean, 1.0 / (before + 1));
}

void Assembly::add(const ExpertChoice& held, const std::vector<std::pair<std::string, at::Tensor>>& tensors,
                   const std::vector<std::vector<ExpertSteps>>& steps) {
  const at::NoGradGuard no_grad;
  const costmodel::ModelShape& shape = whole_.shape;
  for (const auto& [name, given] : tensors) {
    // "layers.3.up.moment1" belongs to "layers.3.up"; other tensors of a checkpoint belong to no parameter.
    auto spec = specs_.find(name);
    const std::size_t ending = name.rfind('.');
    const bool counts = name.ends_with(".steps");
    if (spec == specs_.end() && ending != std::string::npos) spec = specs_.find(name.substr(0, ending));
    if (spec == specs_.end()) continue;
    const std::int64_t dim = expert_dim(spec->second, whole_.skip_token);
    if (counts && dim >= 0) continue;  // `steps` has the counts of experts
    const at::Tensor values = given.to(at::kCPU);
    auto [known, added] = whole_.tensors.try_emplace(name);
    auto [part, new_part] = parts_.try_emplace(name, Part{spec->second, {}});
    std::vector<int>& count = part->second.held;
    if (added) {
      known->second = counts ? at::zeros_like(values) : at::zeros(spec->second.sizes, values.options());
      count.assign(dim < 0 ? 1 : static_cast<std::size_t>(shape.experts), 0);
    }
    if (dim < 0) {
      add_to_mean(name, known->second, values, count[0]++);
      continue;
    }
    const std::vector<int> local = local_experts(shape, held, spec->second.layer);
    for (std::size_t row = 0; row < local.size(); ++row) {
      const int expert = local[row];
      add_to_mean(name, known->second.select(dim, expert), values.select(dim, static_cast<std::int64_t>(row)),
                  count[static_cast<std::size_t>(expert)]++);
    }
  }
  for (std::size_t layer = 0; layer < steps.size(); ++layer) {
    const std::vector<int> local = local_experts(shape, held, static_cast<std::int64_t>(layer));
    for (std::size_t row = 0; row < local.size(); ++row)
      whole_.experts[layer][static_cast<std::size_t>(local[row])] = steps[layer][row];
  }
}

std::vector<std::pair<int, int>> Assembly::fill(
    const ExpertChoice& held, const std::vector<std::pair<std::string, at::Tensor>>& tensors,
    const std::vector<std::vector<ExpertSteps>>& steps) {
  const at::NoGradGuard no_grad;
  const costmodel::ModelShape& shape = whole_.shape;
  std::set<std::pair<int, int>> filled;
  for (const auto& [name, given] : tensors) {
    const auto part = parts_.find(name);
    if (part == parts_.end()) continue;
    const ParameterSpec& spec = part->second.spec;
    const std::int64_t dim = expert_dim(spec, whole_.skip_token);
    if (dim < 0) continue;
    const std::vector<int> local = local_experts(shape, held, spec.layer);
    for (std::size_t row = 0; row < local.size(); ++row) {
      int& count = part->second.held[static_cast<std::size_t>(local[row])];
      if (count > 0) continue;
      add_to_mean(name, whole_.tensors.at(name).select(dim, local[row]),
                  given.to(at::kCPU).select(dim, static_cast<std::int64_t>(row)), count++);
      const auto [which, added] = filled.emplace(static_cast<int>(spec.layer), local[row]);
      const auto layer = static_cast<std::size_t>(spec.layer);
      if (added && layer < steps.size())
        whole_.experts[layer][static_cast<std::size_t>(local[row])] = steps[layer][row];
    }
  }
  return {filled.begin(), filled.end()};
}

WholeModel Assembly::finish() {
  for (const auto& [name, part] : parts_) {
    for (std::size_t expert = 0; expert < part.held.size(); ++expert) {
      if (part.held[expert] == 0)
        throw std::runtime_error("no site holds " + place_of(part.spec, expert) + " (" + name + ")");
    }
  }
  for (const auto& [name, spec] : specs_) {
    if (!whole_.tensors.contains(name)) throw std::runtime_error("no site holds " + name);
  }
  return std::move(whole_);
}

at::Tensor part_of(const at::Tensor& whole, const ParameterSpec& spec, const costmodel::ModelShape& shape,
                   const ExpertChoice& held) {
  const std::int64_t dim = expert_dim(spec, held.skip_token);
  if (dim < 0 || held.local.empty()) return whole;
  const std::vector<int> local = local_experts(shape, held, spec.layer);
  const at::Tensor rows = at::tensor(std::vector<std::int64_t>(local.begin(), local.end()), at::kLong);
  return whole.index_select(dim, rows);
}

bool of_other_outer_optimizer(const WholeModel& whole, Worker& worker) {
  const auto has = [](const auto& tensors, const char* ending) {
    return std::any_of(tensors.begin(), tensors.end(),
                       [&](const auto& entry) { return entry.first.ends_with(ending); });
  };
  const auto own = worker.state();
  return has(whole.tensors, ".outer1") && has(own, ".outer1") &&
         has(whole.tensors, ".outer2") != has(own, ".outer2");
}

void take_part(const WholeModel& whole, Worker& worker) {
  const at::NoGradGuard no_grad;
  const Model& model = worker.model();
  const ExpertChoice& held = model.options().experts;
  std::map<std::string, ParameterSpec> specs;
  for (const Parameter& parameter : model.parameters()) specs.emplace(parameter.spec.name(), parameter.spec);
  worker.open_shards();
  const bool without_outer = of_other_outer_optimizer(whole, worker);
  for (auto& [name, into] : worker.state()) {
    if (without_outer && (name.ends_with(".outer1") || name.ends_with(".outer2"))) continue;
    const bool parameter = specs.contains(name);
    const std::string owner = parameter ? name : name.substr(0, name.rfind('.'));
    auto found = whole.tensors.find(name);
    if (found == whole.tensors.end() && name.ends_with(".anchor")) found = whole.tensors.find(owner);
    if (found == whole.tensors.end()) {
      if (parameter) throw std::runtime_error("the whole model has no parameter " + name);
      continue;
    }
    const at::Tensor values = name.ends_with(".steps")
                                  ? found->second
                                  : part_of(found->second, specs.at(owner), model.shape(), held);
    if (values.sizes() != into.sizes())
      throw std::runtime_error("parameter " + name + " of the whole model has another shape");
    into.copy_(values);
  }
  worker.close_shards();
  for (std::size_t layer = 0; layer < whole.experts.size(); ++layer) {
    std::vector<ExpertSteps> steps;
    for (const int expert : local_experts(model.shape(), held, static_cast<std::int64_t>(layer)))
      steps.push_back(whole.experts[layer][static_cast<std::size_t>(expert)]);
    worker.inner().set_experts(static_cast<std::int64_t>(layer), std::move(steps));
  }
  worker.model().refresh_compute_weights();
}

}  // namespace fomoe::trainer
