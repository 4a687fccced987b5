#include "costmodel/published/estimate.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "costmodel/published/statistics.hpp"

namespace fomoe::costmodel {

bool LossEstimate::equal() const { return std::abs(points) <= half; }

double LossEstimate::probability_above_0() const {
  if (half == 0) return 0.5;
  const int degrees = studies > 1 ? studies - 1 : kMostDegrees;
  return student_cdf(points / (half / t_90(degrees)), degrees);
}

namespace {

/// L(N, D) ÷ (B/D^β): by how much the whole loss exceeds the part that falls with tokens.
double loss_over_data(const TokenLaw& law, double parameters, double tokens) {
  const double data = law.b / std::pow(tokens, law.beta);
  return (law.e + law.a / std::pow(parameters, law.alpha) + data) / data;
}

}  // namespace

std::optional<double> tokens_factor(const TokenLaw& law, double parameters, double tokens, double points) {
  const double share = points / 100;
  const double left = 1 - loss_over_data(law, parameters, tokens) * share / (1 + share);
  if (left <= 0) return std::nullopt;
  return std::pow(left, -1 / law.beta);
}

double points_of_factor(const TokenLaw& law, double parameters, double tokens, double factor) {
  const double part =
      (1 - std::pow(factor, -law.beta)) / loss_over_data(law, parameters, tokens);  // p ÷ (1 + p)
  return 100 * part / (1 - part);
}

double EqualLossRange::centre() const { return std::sqrt(centre_low * centre_high); }

EqualLossRange tokens_to_equal_loss(double parameters, double tokens, double low_points, double points,
                                    double high_points) {
  const auto ends = [&](double at) {
    std::array<double, kTokenLaws.size()> factors{};
    for (std::size_t i = 0; i < factors.size(); ++i)
      factors[i] = tokens_factor(kTokenLaws[i], parameters, tokens, at)
                       .value_or(std::numeric_limits<double>::infinity());
    const auto [low, high] = std::minmax_element(factors.begin(), factors.end());
    return std::pair{*low, *high};
  };
  const auto [centre_low, centre_high] = ends(points);
  return {ends(low_points).first, centre_low, centre_high, ends(high_points).second};
}

}  // namespace fomoe::costmodel
