// Unions and differences of time spans [begin, end), in seconds.
#pragma once
#include <utility>
#include <vector>

namespace fomoe::costmodel {

using Span = std::pair<double, double>;

/// Total length of the union of the spans.
double covered(std::vector<Span> spans);

/// Length of the part of the union of `spans` that no span of `hiding` covers:
///   |∪(spans ∪ hiding)| − |∪ hiding|
double uncovered(const std::vector<Span>& spans, const std::vector<Span>& hiding);

}  // namespace fomoe::costmodel
