// A setting of local-update training, and what published runs say of its loss.
#pragma once
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fomoe::costmodel {

/// What is trained, and how. `parameters` are those that a token uses, `tokens` those of all replicas, and
/// `steps` those of one replica.
struct LossSetting {
  double parameters = 0, tokens = 0;
  std::int64_t replicas = 1, local_steps = 1;
  double steps = 0;
  std::string method = "diloco";  // "ddp" for all training that averages exact gradients in each step
  bool mixture = false;           // a token does not use all experts
  bool refuse_mixtures = false;   // otherwise dense rows of the same active parameters answer, with a note
  std::string inner_optimizer = "adamw";
  double wire_bits = 16;            // of a value that is sent up
  double density = 1;               // share of the values that are sent
  std::int64_t expert_overlap = 0;  // O_e; 0 and M: every site holds every expert
  bool same_data = true;            // all sites draw from one distribution

  /// Synchronisations, of which the last may come after fewer steps.
  [[nodiscard]] double rounds() const { return std::ceil(steps / static_cast<double>(local_steps)); }
  friend bool operator==(const LossSetting&, const LossSetting&) = default;
};

/// Points of loss (1 % each) above those of a reference, with half the width of the 80 % interval. `reasons`
/// say why nothing is known; the numbers are then 0.
struct LossEstimate {
  double points = 0, half = 0;
  std::vector<std::string> rows;  // ids of all runs that the numbers come from
  int studies = 0;                // papers that the interval counts
  std::vector<std::string> reasons, notes;

  [[nodiscard]] bool known() const { return reasons.empty(); }
  [[nodiscard]] double low() const { return points - half; }
  [[nodiscard]] double high() const { return points + half; }
  /// "=": 0 lies inside the interval.
  [[nodiscard]] bool equal() const;
  /// By Student's t over the studies. 1/2 if both numbers are 0.
  [[nodiscard]] double probability_above_0() const;
};

/// A law L(N, D) = E + A/N^α + B/D^β in nats per token, for N parameters and D tokens.
struct TokenLaw {
  const char* name;
  double e, a, alpha, b, beta;
};
/// Two published laws, which serve as two ends.
inline constexpr std::array<TokenLaw, 2> kTokenLaws = {
    {{"Hoffmann et al. 2022", 1.69, 406.4, 0.34, 410.7, 0.28},  // arXiv 2203.15556, as rounded in its text
     {"Besiroglu et al. 2024", 1.8172, 482.01, 0.3478, 2085.43,
      0.3658}}};  // 2404.10102: its runs, fitted anew

/// Factor r on the tokens that makes up for `points` of loss of the same model: the method's loss on D tokens
/// is (1 + p)·L(N, D), with the same p for every D, and (1 + p)·L(N, r·D) = L(N, D). Empty if no number of
/// tokens reaches it.
std::optional<double> tokens_factor(const TokenLaw& law, double parameters, double tokens, double points);

/// The points of loss that `factor` times the tokens make up for: the inverse of tokens_factor().
double points_of_factor(const TokenLaw& law, double parameters, double tokens, double factor);

/// Factors on the tokens of a run, and thus on its time and cost, until it has the loss of data-parallel
/// training. Infinite if no number of tokens reaches it.
struct EqualLossRange {
  double low = 1, centre_low = 1, centre_high = 1, high = 1;
  /// The geometric mean of the centres of both laws, by which plans are ranked.
  [[nodiscard]] double centre() const;
};
/// The least and the largest value of both laws at the ends of the interval, and at its centre.
EqualLossRange tokens_to_equal_loss(double parameters, double tokens, double low_points, double points,
                                    double high_points);

}  // namespace fomoe::costmodel
