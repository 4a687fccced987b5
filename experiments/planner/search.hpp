// The value of one key at which a target is reached, by bisection: for `fomoe solve`.
#pragma once
#include <functional>
#include <optional>
#include <vector>

namespace fomoe::planner {

struct Domain {
  double low = 0, high = 0;  // low above zero
  bool whole = false;        // only whole numbers
  /// A whole number that is possible: its multiples by powers of 2, and what powers of 2 leave of it, are
  /// samples too. They keep its odd divisors, which counts that must divide have in common.
  std::optional<double> own = std::nullopt;
};

/// At least 0 where the value reaches the target; none where the scenario is impossible with it.
using Margin = std::function<std::optional<double>(double)>;

struct Found {
  enum class Kind { smallest, largest, every, none } kind = Kind::none;
  double value = 0;  // the smallest or largest that reaches the target; of `every`, the least that was tried
  double best = 0;   // of `none`: the value that comes closest
  /// Values between which the target is missed again, on the side where it should be reached.
  std::optional<double> missed_again;
};

/// Between two samples of whole numbers that are possible, at most 4096 numbers in a row are asked whether
/// they are possible too. `quick` brackets the answer, `precise` decides. Bisection ends where the next value
/// that could be the answer is 0.1 % away, or the next whole number. The domain is sampled at factors of 2,
/// and at every whole number up to 64: a target that is reached on a shorter stretch only is not seen.
Found search(const Domain& domain, const Margin& quick, const Margin& precise);

}  // namespace fomoe::planner
