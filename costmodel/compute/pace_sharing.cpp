#include "costmodel/compute/pace_sharing.hpp"

#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "costmodel/math/root.hpp"

namespace fomoe::costmodel {

namespace {

constexpr double kUnlimited_s = std::numeric_limits<double>::infinity();
constexpr double kShortest_s = 1e-12;  // a cycle without any duration cannot be told from others
// A transfer that alone fills its cycles takes as long as the others leave, whatever the cycle: without
// latency, any cycle would be consistent with a link that is used fully. Being a little later than its share
// makes it unique.
constexpr double kLater = 1 + 1e-9;
constexpr double kLeastFree = 1e-12;  // of the time; its logarithm must be finite

/// The slowest part of a transfer.
struct Slowest {
  double duration_s = 0;
  double growth_s = 0;     // derivative by the share of the time for which others use it
  double own_s = 0;        // what does not count as others', in each cycle
  std::size_t shared = 0;  // what it is a use of, if others can slow it down
};

/// The parts of a cycle, and how the whole depends on the two slowest parts.
struct Parts {
  Slowest up, down;
  double all_s = 0, by_up = 0, by_down = 0;

  /// Derivative of the whole by the cycle's duration, which lowers the worker's own share.
  [[nodiscard]] double by_cycle(double cycle_s) const {
    return (by_up * up.growth_s * up.own_s + by_down * down.growth_s * down.own_s) / (cycle_s * cycle_s);
  }
};

/// Workers that are alike.
struct Kind {
  Worker worker;  // with the uses that bind
  double count = 0;
  double alone_s = 0;  // the cycle if nobody else used anything
  double cycle_s = 0;  // the last one that was found, from which the search for the next one starts
};

class Sharing {
 public:
  Sharing(const std::map<Worker, double>& workers, std::size_t shared) : free_(shared, 1.0) {
    for (const auto& [worker, count] : workers) {
      const double alone_s = parts_of(worker, kUnlimited_s, false).all_s;
      kinds_.push_back({worker, count, alone_s, alone_s});
    }
    keep_what_binds();
    solve();
  }

  [[nodiscard]] std::vector<Cycle> cycles() const {
    std::vector<Cycle> cycles;
    for (const Kind& kind : kinds_) {
      const Parts parts = parts_of(kind.worker, kind.cycle_s);
      cycles.push_back({parts.up.duration_s, parts.down.duration_s, parts.all_s});
    }
    return cycles;
  }

 private:
  /// The parts of a cycle of that duration, if the others use their shares; without `busy`, if
  /// they do nothing.
  [[nodiscard]] Parts parts_of(const Worker& worker, double cycle_s, bool busy = true) const {
    Parts parts{{worker.up_s}, {worker.down_s}};
    const auto slowed = [&](Slowest& part, const Use& use, double alone_s) {
      // Fragments move both ways at once, over a half-duplex line, too.
      const double own_s = worker.fragments > 1 ? alone_s : use.all_s();
      const double left = busy ? std::min(1.0, free_[use.shared] + own_s / cycle_s) : 1;
      if (alone_s > part.duration_s * left)
        part = {alone_s / left, left < 1 ? alone_s / (left * left) : 0, own_s, use.shared};
    };
    for (const Use& use : worker.uses) {
      slowed(parts.up, use, use.up_s);
      slowed(parts.down, use, use.down_s);
    }
    parts.all_s = std::max(worker.steps_s, kShortest_s);
    const auto at_least = [&](double duration_s, double by_up, double by_down) {
      if (duration_s > parts.all_s) {
        parts.all_s = duration_s;
        parts.by_up = by_up;
        parts.by_down = by_down;
      }
    };
    const double up_s = parts.up.duration_s, down_s = parts.down.duration_s;
    at_least((worker.alone_s + up_s + down_s) / worker.fragments, 1 / worker.fragments, 1 / worker.fragments);
    if (worker.fragments > 1) {
      at_least((up_s + worker.up_late_s) * kLater, kLater, 0);
      at_least((down_s + worker.down_late_s) * kLater, 0, kLater);
    }
    return parts;
  }

  /// Drops all uses that cannot be the slowest part of some worker's transfer. Most links never are: even if
  /// all cycles were as short as they can be, others would leave so much of them that something else is
  /// slower.
  void keep_what_binds() {
    std::vector<double> most(free_.size(), 0.0);  // shares of the time with the shortest cycles
    for (const Kind& kind : kinds_)
      for (const Use& use : kind.worker.uses) most[use.shared] += kind.count * use.all_s() / kind.alone_s;
    std::vector<bool> binds(free_.size(), false);
    for (const Kind& kind : kinds_) {
      const Worker& worker = kind.worker;
      for (const Use& use : worker.uses) {
        const double left = 1 - most[use.shared];
        const auto hidden = [&](double Use::*part, double own_s) {
          double slower_s = own_s;
          for (const Use& other : worker.uses)
            if (other.*part > use.*part) slower_s = std::max(slower_s, other.*part);
          return use.*part == 0 || (left > 0 && use.*part / left <= slower_s);
        };
        if (!hidden(&Use::up_s, worker.up_s) || !hidden(&Use::down_s, worker.down_s))
          binds[use.shared] = true;
      }
    }
    std::vector<std::size_t> renumbered(free_.size(), 0);
    std::size_t next = 0;
    for (std::size_t s = 0; s < binds.size(); ++s)
      if (binds[s]) renumbered[s] = next++;
    for (Kind& kind : kinds_) {
      std::erase_if(kind.worker.uses, [&](const Use& use) { return !binds[use.shared]; });
      for (Use& use : kind.worker.uses) use.shared = renumbered[use.shared];
    }
    free_.assign(next, 1.0);
  }

  /// Finds the cycle with the shares as they are, by Newton's method between bounds.
  void find_cycle(Kind& kind) const {
    constexpr int kMostSteps = 100;
    double low_s = kind.alone_s, high_s = kUnlimited_s, last_step_s = kUnlimited_s;
    for (int step = 0; step < kMostSteps; ++step) {
      const double cycle_s = kind.cycle_s;
      const Parts parts = parts_of(kind.worker, cycle_s);
      const double longer_s = parts.all_s - cycle_s;
      (longer_s > 0 ? low_s : high_s) = cycle_s;
      double next_s = cycle_s + longer_s / (1 - parts.by_cycle(cycle_s));
      const bool slow = std::abs(next_s - cycle_s) > last_step_s / 2;
      if (!(next_s >= low_s && next_s <= high_s) || slow) {
        high_s = std::min(high_s, parts_of(kind.worker, kUnlimited_s).all_s);
        next_s = std::sqrt(low_s * high_s);
      }
      last_step_s = std::abs(next_s - cycle_s);
      kind.cycle_s = next_s;
      if (last_step_s <= 1e-12 * cycle_s) return;  // the next step would be about its square
    }
  }

  /// By how much the uses of the cycles, and what is free, exceed the whole time.
  [[nodiscard]] Eigen::VectorXd excess() {
    Eigen::VectorXd more(index(free_.size()));
    for (std::size_t s = 0; s < free_.size(); ++s) more[index(s)] = free_[s] - 1;
    for (Kind& kind : kinds_) {
      find_cycle(kind);
      for (const Use& use : kind.worker.uses)
        more[index(use.shared)] += kind.count * use.all_s() / kind.cycle_s;
    }
    return more;
  }

  /// Derivatives of the excess (rows) by the logarithms of what is free (columns) at the present cycles.
  [[nodiscard]] Eigen::MatrixXd slopes() const {
    const Eigen::Index size = index(free_.size());
    Eigen::MatrixXd slopes = Eigen::MatrixXd::Identity(size, size);
    for (const Kind& kind : kinds_) {
      const Parts parts = parts_of(kind.worker, kind.cycle_s);
      const double settles = 1 - parts.by_cycle(kind.cycle_s);
      for (const Use& use : kind.worker.uses) {
        const double more = kind.count * use.all_s() / (kind.cycle_s * kind.cycle_s) / settles;
        const auto by = [&](const Slowest& part, double weight) {
          if (part.growth_s > 0)
            slopes(index(use.shared), index(part.shared)) += more * weight * part.growth_s;
        };
        by(parts.up, parts.by_up);
        by(parts.down, parts.by_down);
      }
    }
    for (std::size_t s = 0; s < free_.size(); ++s) slopes.col(index(s)) *= free_[s];
    return slopes;
  }

  void solve() {
    constexpr int kMostSteps = 300;
    constexpr double kSame = 1e-10, kRounding = 4e-15;
    Eigen::VectorXd more = excess();
    bool newton = true;
    for (int step = 0; step < kMostSteps; ++step) {
      if (free_.empty() || more.lpNorm<Eigen::Infinity>() <= kRounding) return;
      const std::vector<double> before = free_;
      newton = newton && closer(slopes().partialPivLu().solve(-more), more);
      if (!newton) {
        one_by_one(step < kMostSteps / 2 ? 1 : 0.5);
        more = excess();
      }
      double most = 0;
      for (std::size_t s = 0; s < free_.size(); ++s)
        most = std::max(most, std::abs(free_[s] / before[s] - 1));
      if (most <= kSame) return;
    }
  }

  /// Changes the logarithms by that or by a part of it, and `more` with them, if they get closer to equality.
  bool closer(const Eigen::VectorXd& change, Eigen::VectorXd& more) {
    constexpr double kMostChange = 2;
    const std::vector<double> before = free_;
    for (double part = 1; part > 0.01; part /= 2) {
      for (std::size_t s = 0; s < free_.size(); ++s) {
        const double factor = std::exp(std::clamp(part * change[index(s)], -kMostChange, kMostChange));
        free_[s] = std::clamp(before[s] * factor, kLeastFree, 1.0);
      }
      const Eigen::VectorXd now = excess();
      if (now.lpNorm<Eigen::Infinity>() < more.lpNorm<Eigen::Infinity>()) {
        more = now;
        return true;
      }
    }
    free_ = before;
    return false;
  }

  /// Finds what is free of one thing after the other, with the rest as it is, and goes this part of the way.
  void one_by_one(double part) {
    for (std::size_t s = 0; s < free_.size(); ++s) {
      const double before = free_[s];
      const auto less = [&](double free) {
        free_[s] = free;
        return -excess()[index(s)];
      };
      free_[s] = before * std::pow(root_of_decreasing(less, kLeastFree, 1.0) / before, part);
    }
  }

  static Eigen::Index index(std::size_t i) { return static_cast<Eigen::Index>(i); }

  std::vector<Kind> kinds_;
  std::vector<double> free_;  // share of the time, by what is shared and binds
};

}  // namespace

std::vector<Cycle> shared_cycles(const std::vector<Worker>& workers, std::size_t shared) {
  std::map<Worker, double> kinds;  // with their numbers
  for (const Worker& worker : workers) ++kinds[worker];
  const std::vector<Cycle> cycles = Sharing(kinds, shared).cycles();
  std::vector<Cycle> of_workers;
  for (const Worker& worker : workers)
    of_workers.push_back(cycles[static_cast<std::size_t>(std::distance(kinds.begin(), kinds.find(worker)))]);
  return of_workers;
}

}  // namespace fomoe::costmodel
