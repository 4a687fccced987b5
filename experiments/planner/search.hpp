// Finds the value of one key at which a target is reached, for `fomoe solve`.
#pragma once
#include <functional>
#include <optional>
#include <vector>

namespace fomoe::planner {

struct Domain {
  double low = 0, high = 0;  // limits of the search; low is above zero, or a whole number from zero on
  bool whole = false;        // whether only whole numbers are allowed
  /// A whole number that is known to be possible. The search also samples this number multiplied and divided
  /// by powers of 2. Such samples keep the odd divisors of the number, so they are often possible for counts
  /// that must divide other counts.
  std::optional<double> own = std::nullopt;
  /// The search ends when the remaining interval is narrower than this share of its values.
  double resolution = 1e-3;
  /// A value nearby that is fit to be printed, which the search prefers; empty: every value is.
  std::function<double(double)> rounded = nullptr;
};

/// Returns the distance from the target for a value of the key. The result is at least 0 if the value reaches
/// the target and negative if the value misses the target. The result is empty if the scenario is impossible
/// with this value.
using Margin = std::function<std::optional<double>(double)>;

/// Whole numbers from here on are searched to the resolution of other values: nobody asks for the last digit
/// of a number of tokens.
inline constexpr double kManyWhole = 1e6;

struct Found {
  enum class Kind { smallest, largest, every, none } kind = Kind::none;
  /// For `smallest` and `largest`: the smallest or largest value that reaches the target. For `every`: the
  /// end of the possible values that reaches the target by less.
  double value = 0;
  bool upper_end = false;  // of `every`
  /// For `none`: the value that comes closest. Empty if the scenario is impossible with all values tried.
  std::optional<double> best;
  /// A value that misses the target although it lies beyond `value`, where the target should be reached.
  /// Empty if no such value was found.
  std::optional<double> missed_again;
  /// Of a target that is missed at both ends of the domain: the other end of the interval that reaches it.
  std::optional<double> other_end;
  /// A value beyond both that reaches the target again.
  std::optional<double> reached_again;
};

/// Searches the domain for the value that just reaches the target. `quick` shows which values to evaluate
/// with `precise`, and `precise` decides whether a value reaches the target. The search ends when the
/// remaining interval is narrower than the resolution, or when its ends are neighbouring whole numbers below
/// kManyWhole. If
/// the target is missed at both ends of the domain and reached between them, the end that misses it by more
/// in `quick` decides whether the answer is the largest or the smallest value of that interval; `other_end`
/// is the other one. Before, the domain is sampled at factors of 2 and at every whole number up to 64. If the
/// target is reached only between two neighbouring samples, the search does not find it. Where the scenario
/// is impossible at the ends of the domain, the last possible values are samples too. In a bisection over
/// whole numbers, at most 4096 consecutive numbers are tested to find a number with which the scenario is
/// possible.
Found search(const Domain& domain, const Margin& quick, const Margin& precise);

}  // namespace fomoe::planner
