#include "experiments/planner/search.hpp"

#include <algorithm>
#include <boost/math/tools/toms748_solve.hpp>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

namespace fomoe::planner {

namespace {

constexpr double kDensest = 64;  // every whole number up to this one is a sample
constexpr int kProbes = 6;
constexpr double kOfBorder = 1e-3;  // precision of the limit of what is possible
constexpr int kAims = 4;
constexpr double kMostImpossible = 4096;  // consecutive whole numbers tested, see search.hpp

std::vector<double> samples(const Domain& domain) {
  std::vector<double> values;
  for (double value = domain.low; value < domain.high;
       value = domain.whole && value < kDensest ? value + 1 : value * 2)
    values.push_back(domain.whole ? std::round(value) : value);
  values.push_back(domain.high);
  if (domain.whole && domain.own) {
    for (double value = *domain.own; value <= domain.high; value *= 2) values.push_back(value);
    for (double value = *domain.own; value >= domain.low && value == std::floor(value); value /= 2)
      values.push_back(value);
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
  }
  return values;
}

class Search {
 public:
  Search(const Domain& domain, const Margin& quick, const Margin& precise)
      : domain_(domain), by_formula_(quick), precise_(precise) {
    const std::vector<double> tried = samples(domain);
    std::size_t first = tried.size(), last = 0;  // the possible samples are among these
    for (std::size_t i = 0; i < tried.size(); ++i) {
      const std::optional<double> margin = quick(tried[i]);
      if (!margin) continue;
      first = std::min(first, i);
      last = i;
      values_.push_back(tried[i]);
      quick_.push_back(*margin);
    }
    if (values_.empty()) return;
    // What is possible may end between two samples, and the target may be crossed between the last possible
    // sample and that end.
    if (first > 0) add(border(quick, tried[first - 1], tried[first]), quick, values_.begin());
    if (last + 1 < tried.size()) add(border(quick, tried[last + 1], tried[last]), quick, values_.end());
  }

  Found run() {
    Found found;
    if (values_.empty()) return found;
    const std::size_t last = values_.size() - 1;
    const bool good_low = good(values_.front()), good_high = good(values_[last]);
    if (good_low && good_high) {
      if (const auto gap = first_bad()) {  // the target is reached at both ends, but missed between them
        found.missed_again = values_[*gap];
        found.kind = Found::Kind::smallest;
        std::size_t upper = *gap;
        while (!good(values_[upper])) ++upper;
        found.value = narrow(values_[upper - 1], values_[upper]);
        return found;
      }
      found.kind = Found::Kind::every;
      // The end that is least favourable by the closed form: the answer says how far one may go.
      found.upper_end = quick_.front() > quick_[last];
      found.value = found.upper_end ? values_[last] : values_.front();
      return found;
    }
    if (!good_low && !good_high) {
      // The closed form says in which direction the margin rises: simulated ends may differ at random.
      const bool from_top = quick_[last] < quick_.front();
      const std::optional<std::size_t> inside = any_good(from_top);
      if (!inside) {
        found.best = best();
        return found;
      }
      std::size_t below = *inside, above = *inside;
      while (good(values_[below])) --below;
      while (good(values_[above])) ++above;
      found.reached_again = from_top ? good_among(0, below) : good_among(above, last);
      if (from_top) {
        found.kind = Found::Kind::largest;
        found.value = narrow(values_[above], values_[above - 1]);
        found.other_end = narrow(values_[below], values_[below + 1]);
        found.missed_again = values_.front();
      } else {
        found.kind = Found::Kind::smallest;
        found.value = narrow(values_[below], values_[below + 1]);
        found.other_end = narrow(values_[above], values_[above - 1]);
        found.missed_again = values_[last];
      }
      return found;
    }
    // Only one end of the domain reaches the target. There is thus an odd number of crossings, usually one:
    // points where the margin changes its sign. The closed form shows where to search first.
    const bool rising = good_high;
    std::size_t at = crossing(rising);
    if (rising) {
      while (at > 0 && good(values_[at])) --at;
      while (!good(values_[at + 1])) ++at;
      found.kind = Found::Kind::smallest;
      found.value = narrow(values_[at], values_[at + 1]);
    } else {
      while (at + 1 < last && good(values_[at + 1])) ++at;
      while (!good(values_[at])) --at;
      found.kind = Found::Kind::largest;
      found.value = narrow(values_[at + 1], values_[at]);
    }
    // Check at some samples whether the target is reached everywhere beyond the crossing.
    const std::size_t from = rising ? at + 1 : 0, to = rising ? last : at;
    for (int i = 0; i <= kProbes && to > from; ++i) {
      const double value = values_[from + (to - from) * static_cast<std::size_t>(i) / kProbes];
      if (!good(value)) found.missed_again = value;
    }
    return found;
  }

 private:
  /// Bisects between an impossible value and a possible one for the possible value that is closest to it.
  double border(const Margin& quick, double impossible, double possible) const {
    const auto close = [&] {
      return domain_.whole ? std::abs(impossible - possible) <= 1
                           : std::max(impossible, possible) / std::min(impossible, possible) <= 1 + kOfBorder;
    };
    while (!close()) {
      double middle = std::sqrt(impossible * possible);
      if (domain_.whole) middle = std::floor((impossible + possible) / 2);
      (quick(middle) ? possible : impossible) = middle;
    }
    return possible;
  }
  void add(double value, const Margin& quick, std::vector<double>::iterator at) {
    if (std::find(values_.begin(), values_.end(), value) != values_.end()) return;
    quick_.insert(quick_.begin() + (at - values_.begin()), *quick(value));
    values_.insert(at, value);
  }

  /// By `precise`, which is asked once for each value.
  std::optional<double> margin_of(double value) {
    const auto [found, is_new] = known_.try_emplace(value);
    if (is_new) found->second = precise_(value);
    return found->second;
  }
  bool good(double value) {
    const std::optional<double> margin = margin_of(value);
    return margin && *margin >= 0;
  }

  /// The lower of the two samples around a crossing of the closed form's margin. If there are several
  /// crossings, the function takes the one closest to the end where the target is reached.
  std::size_t crossing(bool rising) const {
    if (rising) {
      for (std::size_t i = values_.size() - 1; i > 0; --i) {
        if (quick_[i] >= 0 && quick_[i - 1] < 0) return i - 1;
      }
      return values_.size() - 2;
    }
    for (std::size_t i = 0; i + 1 < values_.size(); ++i) {
      if (quick_[i] >= 0 && quick_[i + 1] < 0) return i;
    }
    return 0;
  }

  /// The first sample at which the target is missed. The function tests only the samples that miss the target
  /// according to `quick`, and some others.
  std::optional<std::size_t> first_bad() {
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const bool probe = i % std::max<std::size_t>(1, values_.size() / kProbes) == 0;
      if ((probe || quick_[i] < 0) && !good(values_[i])) return i;
    }
    return std::nullopt;
  }
  std::optional<std::size_t> any_good(bool from_top) {
    for (std::size_t k = 0; k < values_.size(); ++k) {
      const std::size_t i = from_top ? values_.size() - 1 - k : k;
      const bool probe = i % std::max<std::size_t>(1, values_.size() / kProbes) == 0;
      if ((probe || quick_[i] >= 0) && good(values_[i])) return i;
    }
    return std::nullopt;
  }
  /// One of a few samples from `from` to `to` that reaches the target.
  std::optional<double> good_among(std::size_t from, std::size_t to) {
    for (std::size_t i = 0; i <= kProbes; ++i) {
      const double value = values_[from + (to - from) * i / kProbes];
      if (good(value)) return value;
    }
    return std::nullopt;
  }
  double best() {
    double value = values_.front(), most = -std::numeric_limits<double>::infinity();
    for (const double one : {values_.front(), values_[values_.size() / 2], values_.back(),
                             values_[static_cast<std::size_t>(std::max_element(quick_.begin(), quick_.end()) -
                                                              quick_.begin())]}) {
      const double margin = margin_of(one).value_or(-std::numeric_limits<double>::infinity());
      if (margin > most) {
        most = margin;
        value = one;
      }
    }
    return value;
  }

  /// The first possible whole number in [from, end).
  std::optional<double> first_possible(double from, double end, double step) {
    for (double value = from; value != end && std::abs(value - from) < kMostImpossible; value += step) {
      if (margin_of(value)) return value;
    }
    return std::nullopt;
  }

  /// Narrows the interval between `bad`, which misses the target, and `reached`, which reaches it, and
  /// returns its end that reaches the target. `bad` may be above or below `reached`.
  double narrow(double bad, double reached) {
    return domain_.whole ? narrow_whole(bad, reached) : narrow_real(bad, reached);
  }

  double narrow_whole(double bad, double reached) {
    while (std::abs(reached - bad) > 1 && !(std::min(bad, reached) >= kManyWhole && close(bad, reached))) {
      double middle = std::floor((bad + reached) / 2);
      // Take the first possible number from the middle towards `reached`, or else towards `bad`. If there
      // is none between the two, the bisection ends.
      const double step = reached > bad ? 1 : -1;
      if (step < 0) middle = std::ceil((bad + reached) / 2);
      const std::optional<double> possible = first_possible(middle, reached, step);
      const std::optional<double> nearer = possible ? possible : first_possible(middle - step, bad, -step);
      if (!nearer) return reached;
      (good(*nearer) ? reached : bad) = *nearer;
    }
    return reached;
  }

  [[nodiscard]] bool close(double a, double b) const {
    return std::abs(std::log(a / b)) <= std::log1p(domain_.resolution);
  }

  static bool inside(double value, double a, double b) {
    return value > std::min(a, b) && value < std::max(a, b);
  }
  /// Rounded, if that leaves it between the two others.
  [[nodiscard]] double rounded(double value, double a, double b) const {
    const double round = domain_.rounded ? domain_.rounded(value) : value;
    return inside(round, a, b) ? round : value;
  }

  /// Between two values whose margins have different signs: where the closed form has its zero, after its
  /// error has been added. That error is known at both values, and taken as linear in between.
  std::optional<double> aim(double bad, double reached) {
    const double low = std::log(std::min(bad, reached)), high = std::log(std::max(bad, reached));
    const auto error = [&](double value) -> std::optional<double> {
      const std::optional<double> formula = by_formula_(value), found = margin_of(value);
      if (!formula || !found || !std::isfinite(*formula) || !std::isfinite(*found)) return std::nullopt;
      return *found - *formula;
    };
    const std::optional<double> at_low = error(std::min(bad, reached)),
                                at_high = error(std::max(bad, reached));
    if (!at_low || !at_high) return std::nullopt;
    bool known = true;
    const auto corrected = [&](double log_value) {
      const std::optional<double> formula = by_formula_(std::exp(log_value));
      known = known && formula && std::isfinite(*formula);
      return formula.value_or(-1) + *at_low + (*at_high - *at_low) * (log_value - low) / (high - low);
    };
    constexpr double kFraction = 0.1;  // of the resolution
    constexpr int kMostHalvings = 30;
    const bool rising = reached > bad;
    double from = low, to = high;
    for (int i = 0; i < kMostHalvings && to - from > kFraction * domain_.resolution; ++i) {
      const double middle = (from + to) / 2;
      ((corrected(middle) >= 0) == rising ? to : from) = middle;
    }
    if (!known) return std::nullopt;
    return std::exp(rising ? to : from);
  }

  /// Narrows the interval around where the closed form points. After the first try, it tries the other side
  /// of that value, so that the interval soon lies around it.
  void approach(double& bad, double& reached) {
    std::optional<bool> last;
    for (int i = 0; i < kAims && !close(bad, reached); ++i) {
      std::optional<double> value = aim(bad, reached);
      if (!value) return;
      constexpr double kBeside = 0.85;  // of the resolution, so that two neighbours are close
      const double step = std::log1p(domain_.resolution) * kBeside;
      if (last) *value *= std::exp((*last == (reached > bad)) ? -step : step);
      *value = rounded(*value, bad, reached);
      if (!inside(*value, bad, reached)) return;
      last = good(*value);
      (*last ? reached : bad) = *value;
    }
  }

  /// What remains is narrowed by interpolation (Alefeld, Potra and Shi 1995, algorithm 748), which takes
  /// fewer evaluations than bisection where margins are smooth. Works with logarithms. An impossible value,
  /// which misses the target, and a margin of 0, which reaches it, have no slope to follow: small margins
  /// lead to bisection there.
  double narrow_real(double bad, double reached) {
    approach(bad, reached);
    if (close(bad, reached)) return reached;
    constexpr double kSmall = 1e-9, kLarge = 1e100;
    constexpr std::uintmax_t kMost = 64;
    const double log_bad = std::log(bad), log_reached = std::log(reached);
    // The ends have margins already, of their very values.
    const auto value_at = [&](double log_value) {
      return log_value == log_bad       ? bad
             : log_value == log_reached ? reached
                                        : rounded(std::exp(log_value), bad, reached);
    };
    const auto margin = [&](double log_value) {
      const double found = margin_of(value_at(log_value)).value_or(-kSmall);
      return found == 0 ? kSmall : std::clamp(found, -kLarge, kLarge);
    };
    double low = std::min(log_bad, log_reached), high = std::max(log_bad, log_reached);
    const double at_low = margin(low), at_high = margin(high);
    const auto enough = [&](double a, double b) { return std::abs(b - a) <= std::log1p(domain_.resolution); };
    std::uintmax_t tries = kMost;
    std::tie(low, high) =
        boost::math::tools::toms748_solve(margin, low, high, at_low, at_high, enough, tries);
    // One of the two ends reaches the target.
    const double nearer = value_at(reached < bad ? low : high), other = value_at(reached < bad ? high : low);
    return good(nearer) ? nearer : other;
  }

  Domain domain_;
  const Margin &by_formula_, &precise_;
  std::map<double, std::optional<double>> known_;
  std::vector<double> values_, quick_;  // possible samples, and their margins by `quick`
};

}  // namespace

Found search(const Domain& domain, const Margin& quick, const Margin& precise) {
  return Search(domain, quick, precise).run();
}

}  // namespace fomoe::planner
