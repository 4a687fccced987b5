#include "experiments/sweep/unchanged.hpp"

#include <algorithm>
#include <bit>

namespace fomoe::sweep {

namespace {

constexpr std::uint64_t kMostDigests = 1'000'000;

// FNV-1a (Fowler, Noll and Vo) over the bits of the results.
std::uint64_t digest(const Chunk& chunk, std::size_t index) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const std::vector<double>& column : chunk.results) {
    hash ^= std::bit_cast<std::uint64_t>(column[index]);
    hash *= 1099511628211ULL;
  }
  return std::max<std::uint64_t>(hash, 1);
}

}  // namespace

UnchangedAxes::UnchangedAxes(const Grid& grid)
    : grid_(grid), digests_(grid.rows() <= kMostDigests ? static_cast<std::size_t>(grid.rows()) : 0, 0) {}

void UnchangedAxes::add(const Chunk& chunk) {
  if (digests_.empty()) return;
  for (std::size_t i = 0; i < chunk.rows; ++i) {
    if (chunk.problems[i].empty()) digests_[static_cast<std::size_t>(chunk.first_row) + i] = digest(chunk, i);
  }
}

std::vector<std::size_t> UnchangedAxes::found() const {
  std::vector<std::size_t> axes;
  if (digests_.empty() || std::find(digests_.begin(), digests_.end(), 0) != digests_.end()) return axes;
  std::size_t stride = digests_.size();  // rows between two values of the axis; the last axis varies fastest
  for (std::size_t a = 0; a < grid_.axes().size(); ++a) {
    stride /= grid_.axes()[a].size();
    bool changes = false;
    for (std::size_t row = 0; row < digests_.size() && !changes; ++row)
      changes = grid_.digit(row, a) > 0 && digests_[row] != digests_[row - stride];
    if (!changes && grid_.axes()[a].size() > 1) axes.push_back(a);
  }
  return axes;
}

}  // namespace fomoe::sweep
