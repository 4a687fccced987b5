// Finds by bisection the value of one key at which a target is reached, for `fomoe solve`.
#pragma once
#include <functional>
#include <optional>
#include <vector>

namespace fomoe::planner {

struct Domain {
  double low = 0, high = 0;  // limits of the search; low is above zero
  bool whole = false;        // whether only whole numbers are allowed
  /// A whole number that is known to be possible. Its multiples by powers of 2, and its quotients by powers
  /// of 2, are sampled too. They keep its odd divisors, which matters for counts that must divide others.
  std::optional<double> own = std::nullopt;
};

/// The distance of a value from the target: 0 or more if the value reaches the target, negative if it does
/// not, and empty if the scenario is impossible with this value.
using Margin = std::function<std::optional<double>(double)>;

struct Found {
  enum class Kind { smallest, largest, every, none } kind = Kind::none;
  /// The smallest or largest value that reaches the target; for `every`, the least value that was tried.
  double value = 0;
  double best = 0;  // for `none`: the value that comes closest
  /// A range of values, on the side that should reach the target, in which the target is missed again.
  std::optional<double> missed_again;
};

/// Searches the domain for the value that just reaches the target. `quick` brackets the answer and `precise`
/// decides. Bisection ends when the bracket is narrower than 0.1 %, or at neighbouring whole numbers. The
/// domain is sampled at factors of 2 and at every whole number up to 64, so a shorter range that reaches the
/// target is not found. Between two possible samples, at most 4096 consecutive whole numbers are tested for a
/// possible one.
Found search(const Domain& domain, const Margin& quick, const Margin& precise);

}  // namespace fomoe::planner
