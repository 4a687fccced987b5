#include "costmodel/math/fit.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <sstream>

#include "costmodel/math/replicas.hpp"

namespace fomoe::costmodel {

namespace {

// Fewest degrees of freedom: with one, intervals are wide (t = 12.7), but the values that they exclude are
// still useful.
constexpr int kMinDegreesOfFreedom = 1;
constexpr int kFewDegreesOfFreedom = 2;          // see fit_terms()
constexpr double kNoEffect = 1e-3;               // relative change of a prediction
constexpr double kMinSingularValueRatio = 1e-3;  // smallest ÷ largest singular value
constexpr int kMaxIterations = 12;
constexpr double kConverged = 1e-5;  // in units of a term's scale
// Relative errors below this value come from rounding. An interval computed from them would be narrower than
// the accuracy of the finite differences.
constexpr double kMinRelativeError = 1e-7;

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

class Search {
 public:
  Search(const std::vector<FitTerm>& terms, const FitModel& model, const std::vector<double>& observed)
      : terms_(terms), model_(model), observed_(observed) {
    for (const FitTerm& term : terms) theta_.push_back(term.start);
    for (std::size_t i = 0; i < terms.size(); ++i) active_.push_back(i);
  }

  [[nodiscard]] const std::vector<std::size_t>& active() const { return active_; }
  [[nodiscard]] double value(std::size_t term) const { return theta_[term]; }
  [[nodiscard]] const Vector& errors() const { return errors_; }

  void leave_out(std::size_t term) {
    theta_[term] = terms_[term].off;
    std::erase(active_, term);
  }

  /// Derivatives of the errors by term ÷ scale at the present values; active terms only.
  Matrix jacobian() {
    errors_ = errors_at(theta_);
    Matrix j(errors_.size(), static_cast<Eigen::Index>(active_.size()));
    for (std::size_t a = 0; a < active_.size(); ++a) {
      const FitTerm& term = terms_[active_[a]];
      std::vector<double> moved = theta_;
      double step = term.scale;
      if (moved[active_[a]] + step > term.high) step = -step;
      moved[active_[a]] += step;
      j.col(static_cast<Eigen::Index>(a)) = (errors_at(moved) - errors_) / (step / term.scale);
    }
    return j;
  }

  /// Moves the values to the minimum and returns the Jacobian there.
  Matrix minimise() {
    Matrix j = jacobian();
    for (int i = 0; i < kMaxIterations && !active_.empty(); ++i) {
      const Vector step = j.completeOrthogonalDecomposition().solve(-errors_);
      const double before = errors_.squaredNorm();
      std::vector<double> next = theta_;
      double share = 1, moved = 0;
      for (int halved = 0; halved < 6; ++halved, share /= 2) {
        moved = 0;
        for (std::size_t a = 0; a < active_.size(); ++a) {
          const FitTerm& term = terms_[active_[a]];
          const double wanted = theta_[active_[a]] + share * step[static_cast<Eigen::Index>(a)] * term.scale;
          next[active_[a]] = std::clamp(wanted, term.low, term.high);
          moved = std::max(moved, std::abs(next[active_[a]] - theta_[active_[a]]) / term.scale);
        }
        if (errors_at(next).squaredNorm() <= before) break;
        next = theta_;
      }
      const bool done = next == theta_ || moved < kConverged;
      theta_ = next;
      j = jacobian();
      if (done) break;
    }
    return j;
  }

 private:
  Vector errors_at(const std::vector<double>& theta) const {
    const std::vector<double> predicted = model_(theta);
    Vector errors(static_cast<Eigen::Index>(observed_.size()));
    for (std::size_t i = 0; i < observed_.size(); ++i)
      errors[static_cast<Eigen::Index>(i)] = predicted[i] / observed_[i] - 1;
    return errors;
  }

  const std::vector<FitTerm>& terms_;
  const FitModel& model_;
  const std::vector<double>& observed_;
  std::vector<double> theta_;
  std::vector<std::size_t> active_;
  Vector errors_;
};

/// Index in the active terms of a term without effect, or −1.
Eigen::Index without_effect(const Matrix& jacobian) {
  for (Eigen::Index a = 0; a < jacobian.cols(); ++a) {
    if (jacobian.col(a).cwiseAbs().maxCoeff() < kNoEffect) return a;
  }
  return -1;
}

/// Active terms that the data cannot distinguish from each other; empty if all are distinguishable. Columns
/// are normalised first, because a large effect and a small one are easily distinguished.
std::vector<Eigen::Index> indistinct(const Matrix& jacobian) {
  Matrix equal = jacobian;
  for (Eigen::Index a = 0; a < equal.cols(); ++a) equal.col(a).normalize();
  const Eigen::JacobiSVD<Matrix> svd(equal, Eigen::ComputeThinV);
  const Eigen::Index last = equal.cols() - 1;
  std::vector<Eigen::Index> terms;
  if (equal.cols() < 2 || svd.singularValues()[last] > kMinSingularValueRatio * svd.singularValues()[0])
    return terms;
  for (Eigen::Index a = 0; a < equal.cols(); ++a) {
    if (std::abs(svd.matrixV()(a, last)) > 0.1) terms.push_back(a);
  }
  return terms;
}

std::string number(double value) {
  std::ostringstream text;
  text.precision(4);
  text << value;
  return text.str();
}

}  // namespace

Fit fit_terms(const std::vector<FitTerm>& terms, const FitModel& model, const std::vector<double>& observed) {
  Fit fit;
  for (const FitTerm& term : terms) fit.terms.push_back({term.name, false, term.off, 0, 0, "", false});
  const auto n = static_cast<int>(observed.size());
  if (n < 1 + kMinDegreesOfFreedom) {
    fit.refused = "too few observations: " + std::to_string(n) + "; at least " +
                  std::to_string(1 + kMinDegreesOfFreedom) + " are needed";
    return fit;
  }
  Search search(terms, model, observed);
  for (std::size_t term = terms.size(); term + kMinDegreesOfFreedom > static_cast<std::size_t>(n); --term) {
    fit.terms[term - 1].why_not =
        "there are only " + std::to_string(n) + " observations, which suffice for " +
        std::to_string(n - kMinDegreesOfFreedom) + " of " + std::to_string(terms.size()) + " terms";
    search.leave_out(term - 1);
  }
  Matrix jacobian = search.jacobian();
  const auto leave_out = [&](Eigen::Index a, const std::string& why) {
    const std::size_t term = search.active()[static_cast<std::size_t>(a)];
    fit.terms[term].why_not = why;
    search.leave_out(term);
  };
  while (!search.active().empty()) {
    if (const Eigen::Index a = without_effect(jacobian); a >= 0) {
      leave_out(a, "it does not change any of the observed times");
      jacobian = search.jacobian();
      continue;
    }
    if (const std::vector<Eigen::Index> alike = indistinct(jacobian); alike.size() > 1) {
      std::string others;
      for (std::size_t i = 0; i + 1 < alike.size(); ++i)
        others += (i == 0 ? "" : ", ") + terms[search.active()[static_cast<std::size_t>(alike[i])]].name;
      leave_out(alike.back(),
                "its effect cannot be distinguished from that of " + others +
                    ": in all observations their effects are proportional (the payload sizes, or "
                    "the quantities that the terms multiply, vary too little)");
      jacobian = search.jacobian();
      continue;
    }
    jacobian = search.minimise();
    const auto p = static_cast<int>(search.active().size());
    fit.degrees_of_freedom = n - p;
    const double s = std::max(kMinRelativeError, std::sqrt(search.errors().squaredNorm() / (n - p)));
    const Matrix covariance =
        s * s * (jacobian.transpose() * jacobian).completeOrthogonalDecomposition().pseudoInverse();
    const double t = student_t(n - p);
    Eigen::Index worst = -1;
    double worst_ratio = 1;  // half width ÷ distance of the value from `off`
    for (Eigen::Index a = 0; a < p; ++a) {
      const std::size_t term = search.active()[static_cast<std::size_t>(a)];
      const double half = t * std::sqrt(covariance(a, a)) * terms[term].scale, value = search.value(term);
      fit.terms[term] = {terms[term].name, true, value, value - half, value + half, "", false};
      const double distance = std::abs(value - terms[term].off);
      const double ratio = distance > 0 ? half / distance : 1e9;
      if (ratio >= worst_ratio) {
        worst = a;
        worst_ratio = ratio;
      }
    }
    if (worst < 0) break;
    if (p == 1 && n - p <= kFewDegreesOfFreedom) {
      fit.terms[search.active().front()].doubtful = true;
      break;
    }
    const std::size_t term = search.active()[static_cast<std::size_t>(worst)];
    const FittedTerm found = fit.terms[term];
    fit.terms[term] = {terms[term].name, false, terms[term].off, 0, 0, "", false};
    leave_out(worst, "its fitted value is " + number(found.value) + " with a 95 % interval from " +
                         number(found.low95) + " to " + number(found.high95) + ", which includes " +
                         number(terms[term].off) + ", the value without effect");
    jacobian = search.jacobian();
  }
  // Intervals end where values do, so that what reads the fit accepts them.
  for (std::size_t a = 0; a < terms.size(); ++a) {
    FittedTerm& found = fit.terms[a];
    if (!found.supported) continue;
    constexpr double kLeastShare = 1e-3;  // of the value: reciprocals are shown, too
    found.low95 = std::clamp(found.low95, std::max(terms[a].low, kLeastShare * found.value), found.value);
    found.high95 = std::clamp(found.high95, found.value, terms[a].high);
  }
  if (search.active().empty()) fit.degrees_of_freedom = n;
  fit.sum_of_squares = search.errors().squaredNorm();
  fit.relative_s = std::sqrt(fit.sum_of_squares / std::max(1, fit.degrees_of_freedom));
  for (const double error : search.errors()) fit.errors.push_back(error);
  return fit;
}

bool better_than_chance(const Fit& with_term, const Fit& without) {
  const double t = student_t(std::max(1, with_term.degrees_of_freedom - 1));
  return without.sum_of_squares >
         with_term.sum_of_squares * (1 + t * t / std::max(1, with_term.degrees_of_freedom - 1));
}

}  // namespace fomoe::costmodel
