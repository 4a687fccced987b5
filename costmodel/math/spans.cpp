#include "costmodel/math/spans.hpp"

#include <algorithm>
#include <limits>

namespace fomoe::costmodel {

double covered(std::vector<Span> spans) {
  std::sort(spans.begin(), spans.end());
  double total = 0, end = -std::numeric_limits<double>::infinity();
  for (const auto& [a, b] : spans) {
    if (b <= end) continue;
    total += b - std::max(a, end);
    end = b;
  }
  return total;
}

double uncovered(const std::vector<Span>& spans, const std::vector<Span>& hiding) {
  std::vector<Span> both = hiding;
  both.insert(both.end(), spans.begin(), spans.end());
  return covered(std::move(both)) - covered(hiding);
}

}  // namespace fomoe::costmodel
