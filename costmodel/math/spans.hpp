// Stretches of time, as [begin, end) in seconds.
#pragma once
#include <utility>
#include <vector>

namespace fomoe::costmodel {

using Span = std::pair<double, double>;

/// Total length of their union.
double covered(std::vector<Span> spans);

/// How much of their union is in none of `hiding`: ∪(spans ∪ hiding) − ∪ hiding.
double uncovered(const std::vector<Span>& spans, const std::vector<Span>& hiding);

}  // namespace fomoe::costmodel
