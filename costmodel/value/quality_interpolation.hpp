// Interpolation between measured perplexities, for numbers of local steps K and overlaps O_e that no run had.
#pragma once
#include <optional>
#include <vector>

#include "costmodel/inputs/quality_model.hpp"

namespace fomoe::costmodel {

struct Interpolated {
  double perplexity = 0;
  double plus_minus = -1;                     // largest uncertainty of the neighbours; negative: not given
  double lowest = 0, highest = 0;             // perplexity of the neighbours
  std::vector<const QualityRow*> neighbours;  // two, or four if both K and O_e lie between measured values
};

/// The loss ln(perplexity), interpolated linearly in log K and in O_e between the nearest rows on each side.
/// The rows must agree in everything else. Empty outside of their range, or if one of the neighbours is
/// missing.
std::optional<Interpolated> interpolated(const std::vector<const QualityRow*>& rows, double local_steps,
                                         double expert_overlap);

}  // namespace fomoe::costmodel
