#include "trainer/run/router_figures.hpp"

#include <algorithm>
#include <cmath>

namespace fomoe::trainer {

std::vector<RouterFigures> router_figures(const Routing& routing, const ExpertChoice& held) {
  std::vector<RouterFigures> layers;
  for (std::size_t layer = 0; layer < routing.counts.size(); ++layer) {
    const at::Tensor counts = routing.counts[layer].to(at::kCPU, at::kDouble);
    const double all = counts.sum().item<double>();
    const at::Tensor p = counts / std::max(all, 1.0);
    const double mean = all / static_cast<double>(counts.numel());
    const double deviation = std::sqrt((counts - mean).square().mean().item<double>());
    double local = all;
    if (held.skip_token && !held.local.empty()) {
      local = 0;
      for (const int expert : held.local[layer]) local += counts[expert].item<double>();
    }
    layers.push_back({-at::xlogy(p, p).sum().item<double>(), mean > 0 ? deviation / mean : 0,
                      all > 0 ? 1 - local / all : 0});
  }
  return layers;
}

void add_choices(std::vector<std::vector<std::int64_t>>& choices, const Routing& routing,
                 const costmodel::ModelShape& shape, const ExpertChoice& held) {
  choices.resize(routing.counts.size());
  for (std::size_t layer = 0; layer < choices.size(); ++layer) {
    choices[layer].resize(static_cast<std::size_t>(shape.experts), 0);
    const at::Tensor counts = routing.counts[layer].to(at::kCPU);
    const std::vector<int> local = local_experts(shape, held, static_cast<std::int64_t>(layer));
    for (std::int64_t column = 0; column < counts.numel(); ++column) {
      const auto expert = held.skip_token ? static_cast<std::size_t>(column)
                                          : static_cast<std::size_t>(local[static_cast<std::size_t>(column)]);
      choices[layer][expert] += counts[column].item<std::int64_t>();
    }
  }
}

}  // namespace fomoe::trainer
