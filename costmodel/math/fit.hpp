// Least squares of a few terms of a model to measured times, with intervals, and a plain no where the data do
// not support a term.
#pragma once
#include <functional>
#include <string>
#include <vector>

namespace fomoe::costmodel {

struct FitTerm {
  std::string name;
  double off = 0;    // the value that means that the term does nothing
  double start = 0;  // of the search
  double scale = 1;  // a change of this size is small but shows, where the term matters
  double low = 0, high = 0;
};

struct FittedTerm {
  std::string name;
  bool supported = false;  // otherwise value is `off`
  double value = 0;
  double low95 = 0, high95 = 0;  // value ± t·s·√((JᵀJ)⁻¹), Student's t of n − p degrees of freedom
  std::string why_not;           // of a term that is not supported
};

struct Fit {
  std::string refused;  // not empty: nothing was fitted, and this says why
  std::vector<FittedTerm> terms;
  std::vector<double> errors;  // predicted ÷ observed − 1, by observation
  double relative_s = 0;       // standard deviation of these: √(Σ error² ÷ (n − p))
  double sum_of_squares = 0;
  int degrees_of_freedom = 0;
};

/// Predictions of all observations, for values of all terms in the order of the list.
using FitModel = std::function<std::vector<double>(const std::vector<double>&)>;

/// Minimises Σ (predicted ÷ observed − 1)² by Gauss and Newton's method with derivatives by differences, each
/// term within its limits. Terms are left out, one after another and for good,
///   that change no prediction by more than 0.1 % when they change by `scale`;
///   that cannot be told from others: the singular values of the scaled Jacobian differ more than 1000-fold;
///   whose interval includes `off`.
/// Observations must be above zero, and there must be more of them than terms.
Fit fit_terms(const std::vector<FitTerm>& terms, const FitModel& model, const std::vector<double>& observed);

/// Whether a fit with one term more is better than chance (F test, 95 %): its squares are less than those of
/// the other by more than t² ÷ degrees of freedom.
bool better_than_chance(const Fit& with_term, const Fit& without);

}  // namespace fomoe::costmodel
