// The directed paths between all sites of a platform.
#pragma once
#include <cstdint>
#include <limits>
#include <map>
#include <tuple>
#include <vector>

namespace fomoe::platforms {

inline constexpr double kUnlimited = std::numeric_limits<double>::infinity();

/// The directed path between two sites. A route consists of the sender's uplink, the path's shared links, the
/// path's own rate and the receiver's downlink.
struct Path {
  double latency_s = 0;                       // one way
  double bandwidth_bytes_per_s = kUnlimited;  // rate of the path itself, which no other path shares
  int shared = -1;                            // index in Platform::shared_sets; negative if it has none
  /// What one connection carries at most, as it was measured: its buffers and windows may limit it long
  /// before the links do.
  double connection_bytes_per_s = kUnlimited;
  int machines = 1;  // pairs of machines that carry the path's flows in parallel
  int streams = 0;   // connections of each of them in one flow; 0: those of the network model
  friend bool operator==(const Path&, const Path&) = default;
};

/// One path for each ordered pair of sites. Pairs with equal paths share an entry while there are few
/// different paths: 10,000 equal sites have 10⁸ pairs, and one path. With more than `kMostKinds` different
/// paths, each pair has an entry of its own.
class Paths {
 public:
  static constexpr std::size_t kMostKinds = 4096;

  Paths() = default;
  /// All paths are alike. The path of a site to itself is unused.
  Paths(int sites, const Path& all) : sites_(static_cast<std::size_t>(sites)), kinds_{all} {}

  [[nodiscard]] const Path& at(int from, int to) const {
    if (kinds_.size() == 1) return kinds_[0];
    const std::size_t pair = static_cast<std::size_t>(from) * sites_ + static_cast<std::size_t>(to);
    return kinds_[kind_.empty() ? pair : kind_[pair]];
  }
  void set(int from, int to, const Path& path);
  /// Applies `change` to the paths of all pairs. Its result may depend on nothing but the path, because pairs
  /// share entries.
  template <class Change>
  void change_all(const Change& change) {
    known_.clear();
    for (Path& path : kinds_) change(path);
  }
  /// Whether all pairs are known to have the same path.
  [[nodiscard]] bool alike() const { return kinds_.size() == 1; }
  [[nodiscard]] int sites() const { return static_cast<int>(sites_); }

 private:
  using Key = std::tuple<double, double, int, double, int, int>;

  std::size_t sites_ = 0;
  std::vector<Path> kinds_;             // one for all pairs, one for each kind, or [from · sites + to]
  std::vector<std::uint16_t> kind_;     // [from · sites + to]: index in kinds_; empty in the other two cases
  std::map<Key, std::uint16_t> known_;  // the kinds that set() has added since all paths changed
};

}  // namespace fomoe::platforms
