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

}  // namespace fomoe::trainer
