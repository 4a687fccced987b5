#include "platforms/paths.hpp"

namespace fomoe::platforms {

void Paths::set(int from, int to, const Path& path) {
  const std::size_t pair = static_cast<std::size_t>(from) * sites_ + static_cast<std::size_t>(to);
  const bool own_entries = kinds_.size() > 1 && kind_.empty();
  if (own_entries) {
    kinds_[pair] = path;
    return;
  }
  if (at(from, to) == path) return;
  if (kind_.empty()) kind_.assign(sites_ * sites_, 0);
  const auto [known, added] =
      known_.try_emplace(Key(path.latency_s, path.bandwidth_bytes_per_s, path.shared,
                             path.connection_bytes_per_s, path.machines, path.streams),
                         kinds_.size());
  if (added) kinds_.push_back(path);
  kind_[pair] = known->second;
  if (kinds_.size() <= kMostKinds) return;
  std::vector<Path> own;
  own.reserve(kind_.size());
  for (const std::uint16_t kind : kind_) own.push_back(kinds_[kind]);
  kinds_ = std::move(own);
  kind_ = {};
  known_.clear();
}

}  // namespace fomoe::platforms
