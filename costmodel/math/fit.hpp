// Least-squares fit of a few terms of a model to measured times, with confidence intervals. Terms that the
// data do not support are reported as such.
#pragma once
#include <functional>
#include <string>
#include <vector>

namespace fomoe::costmodel {

struct FitTerm {
  std::string name;
  double off = 0;    // value at which the term has no effect
  double start = 0;  // initial value of the search
  double scale = 1;  // size of a small but noticeable change of the value
  double low = 0, high = 0;
};

struct FittedTerm {
  std::string name;
  bool supported = false;  // false: value is `off`
  double value = 0;
  /// 95 % interval: value ± t·s·√((JᵀJ)⁻¹), Student's t of n − p degrees of freedom.
  double low95 = 0, high95 = 0;
  std::string why_not;    // reason, for a term that is not supported
  bool doubtful = false;  // supported, but the interval includes `off`, for lack of observations
};

struct Fit {
  std::string refused;  // not empty: the reason why nothing was fitted
  std::vector<FittedTerm> terms;
  std::vector<double> errors;  // predicted ÷ observed − 1, by observation
  double relative_s = 0;       // standard deviation of the errors: √(Σ error² ÷ (n − p))
  double sum_of_squares = 0;
  int degrees_of_freedom = 0;
};

/// Predictions of all observations for given values of all terms, in the order of the list.
using FitModel = std::function<std::vector<double>(const std::vector<double>&)>;

/// Minimises Σ (predicted ÷ observed − 1)² by the Gauss-Newton method with finite differences, each term
/// within its limits. These terms are left out, one after another and permanently:
///   terms that change no prediction by more than 0.1 % when they change by `scale`;
///   terms that are indistinguishable from others: singular values of the scaled Jacobian differ > 1000-fold;
///   terms whose interval includes `off`, except the last term if there are at most two observations more
///   than terms: then every interval is wide, and the value is still the best one (`doubtful`).
/// With n observations, only the first n − 1 terms are fitted. Observations must be above zero, and at least
/// two.
Fit fit_terms(const std::vector<FitTerm>& terms, const FitModel& model, const std::vector<double>& observed);

/// Whether one more term improves a fit beyond chance (F test, 95 %). This holds if the sum of squares
/// without the term is larger than (1 + t² ÷ degrees of freedom) times the sum of squares with the term,
/// where t is the 97.5 % point of Student's t distribution.
bool better_than_chance(const Fit& with_term, const Fit& without);

}  // namespace fomoe::costmodel
