#include "costmodel/plan/placement.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdint>
#include <numeric>

#include "costmodel/math/random.hpp"
#include "costmodel/plan/site_shares.hpp"

namespace fomoe::costmodel {

namespace {

// The cyclic pattern: expert e is on the workers (e·O_e … e·O_e + O_e − 1) mod M. Every worker appears
// N_e·O_e/M times, the first ones once more if this is no whole number, and never twice for one expert
// because O_e ≤ M.
int cyclic_owner(std::int64_t expert, int slot, int workers, int overlap) {
  return static_cast<int>((expert * overlap + slot) % workers);
}

// The experts of one worker in one layer, as a bit set: trades take most of the time to draw a placement.
class ExpertSet {
 public:
  explicit ExpertSet(int experts) : words_(static_cast<std::size_t>(experts + 63) / 64, 0) {}

  void insert(int expert) { words_[static_cast<std::size_t>(expert) / 64] |= bit(expert); }
  void erase(int expert) { words_[static_cast<std::size_t>(expert) / 64] &= ~bit(expert); }
  /// Appends the experts that are in this set but not in `other`, in ascending order.
  void append_missing_from(const ExpertSet& other, std::vector<int>& list) const {
    for (std::size_t w = 0; w < words_.size(); ++w) {
      for (std::uint64_t bits = words_[w] & ~other.words_[w]; bits != 0; bits &= bits - 1)
        list.push_back(static_cast<int>(64 * w) + std::countr_zero(bits));
    }
  }

 private:
  static std::uint64_t bit(int expert) { return std::uint64_t{1} << (expert % 64); }
  std::vector<std::uint64_t> words_;
};

// Pools the experts that only one of the two workers holds, and deals them out again at random. Each expert
// keeps its number of workers, and each worker its number of experts. Repeated trades approach the uniform
// distribution over such assignments (Strona et al. 2014, "curveball"). `pool` is a reusable buffer.
void trade(ExpertSet& a, ExpertSet& b, std::vector<int>& pool, RandomEngine& engine) {
  pool.clear();
  a.append_missing_from(b, pool);
  const std::size_t only_a = pool.size();
  b.append_missing_from(a, pool);
  shuffle(pool, engine);
  for (std::size_t i = 0; i < pool.size(); ++i) {
    ExpertSet& owner = i < only_a ? a : b;
    ExpertSet& other = i < only_a ? b : a;
    owner.insert(pool[i]);
    other.erase(pool[i]);
  }
}

}  // namespace

Placement::Placement(int layers, int experts, int workers, int overlap)
    : layers_(layers),
      experts_(experts),
      workers_(workers),
      overlap_(overlap),
      owners_(static_cast<std::size_t>(layers) * static_cast<std::size_t>(experts) *
              static_cast<std::size_t>(overlap)) {
  assert(overlap >= 1 && overlap <= workers);
}

std::span<const int> Placement::owners(int layer, int expert) const {
  const auto index =
      static_cast<std::size_t>(layer) * static_cast<std::size_t>(experts_) + static_cast<std::size_t>(expert);
  return {owners_.data() + index * static_cast<std::size_t>(overlap_), static_cast<std::size_t>(overlap_)};
}

std::span<int> Placement::mutable_owners(int layer, int expert) {
  const auto index =
      static_cast<std::size_t>(layer) * static_cast<std::size_t>(experts_) + static_cast<std::size_t>(expert);
  return {owners_.data() + index * static_cast<std::size_t>(overlap_), static_cast<std::size_t>(overlap_)};
}

std::vector<int> Placement::local_experts(int layer, int worker) const {
  std::vector<int> local;
  for (int expert = 0; expert < experts_; ++expert) {
    const auto holders = owners(layer, expert);
    if (std::binary_search(holders.begin(), holders.end(), worker)) local.push_back(expert);
  }
  return local;
}

Placement fixed_placement(int layers, int experts, int workers, int overlap) {
  Placement placement(layers, experts, workers, overlap);
  const bool blocks = workers % overlap == 0;
  for (int layer = 0; layer < layers; ++layer) {
    int block = 0;              // first worker of the block that has the next expert
    std::int64_t of_block = 0;  // experts that it has
    for (int expert = 0; expert < experts; ++expert, ++of_block) {
      for (; blocks && of_block == experts_at(experts, overlap, workers, layer, block); of_block = 0)
        block += overlap;
      const auto owners = placement.mutable_owners(layer, expert);
      for (int slot = 0; slot < overlap; ++slot) {
        // The cyclic pattern of a layer continues that of the layer before.
        const std::int64_t dealt = std::int64_t{layer} * experts + expert;
        owners[static_cast<std::size_t>(slot)] =
            blocks ? block + slot : cyclic_owner(dealt, slot, workers, overlap);
      }
      std::sort(owners.begin(), owners.end());
    }
  }
  return placement;
}

Placement rotated_placement(int layers, int experts, int workers, int overlap) {
  Placement placement = fixed_placement(layers, experts, workers, overlap);
  if (workers % overlap != 0) return placement;
  for (int layer = 0; layer < layers; ++layer) {
    for (int expert = 0; expert < experts; ++expert) {
      const auto owners = placement.mutable_owners(layer, expert);
      for (int& owner : owners) owner = (owner + layer % overlap) % workers;
      std::sort(owners.begin(), owners.end());
    }
  }
  return placement;
}

Placement random_placement(int layers, int experts, int workers, int overlap, std::uint64_t seed,
                           std::uint64_t epoch) {
  Placement placement(layers, experts, workers, overlap);
  RandomEngine engine = seeded_engine(seed, epoch);
  std::vector<int> worker_of(static_cast<std::size_t>(workers)), pool;
  for (int layer = 0; layer < layers; ++layer) {
    // Random labels of workers and experts make every (expert, worker) pair equally likely, with probability
    // exactly N_le/N_e. The trades add variety: without them the sets of owners would be shifts of one
    // pattern.
    std::iota(worker_of.begin(), worker_of.end(), 0);
    shuffle(worker_of, engine);
    // The first workers of the pattern have one expert more if they do not all have equally many.
    std::stable_partition(worker_of.begin(), worker_of.end(), [&](int worker) {
      return experts_at(experts, overlap, workers, layer, worker) > experts * std::int64_t{overlap} / workers;
    });
    std::vector<int> expert_of(static_cast<std::size_t>(experts));
    std::iota(expert_of.begin(), expert_of.end(), 0);
    shuffle(expert_of, engine);

    std::vector<ExpertSet> held(static_cast<std::size_t>(workers), ExpertSet(experts));
    for (int expert = 0; expert < experts; ++expert) {
      for (int slot = 0; slot < overlap; ++slot)
        held[static_cast<std::size_t>(cyclic_owner(expert, slot, workers, overlap))].insert(expert);
    }
    if (overlap < workers) {
      for (int sweep = 0; sweep < 4; ++sweep) {
        for (std::size_t a = 0; a < held.size(); ++a) {
          const std::size_t b = (a + 1 + below(engine, held.size() - 1)) % held.size();
          trade(held[a], held[b], pool, engine);
        }
      }
    }

    std::vector<int> filled(static_cast<std::size_t>(experts), 0);
    for (std::size_t w = 0; w < held.size(); ++w) {
      pool.clear();
      held[w].append_missing_from(ExpertSet(experts), pool);
      for (const int e : pool) {
        const int expert = expert_of[static_cast<std::size_t>(e)];
        const auto slot = static_cast<std::size_t>(filled[static_cast<std::size_t>(expert)]++);
        placement.mutable_owners(layer, expert)[slot] = worker_of[w];
      }
    }
    for (int expert = 0; expert < experts; ++expert) {
      const auto owners = placement.mutable_owners(layer, expert);
      std::sort(owners.begin(), owners.end());
    }
  }
  return placement;
}

std::vector<Migration> migrations(const Placement& from, const Placement& to) {
  assert(from.layers() == to.layers() && from.experts() == to.experts() && from.workers() == to.workers());
  std::vector<Migration> moves;
  std::vector<int> sends(static_cast<std::size_t>(from.workers()), 0);
  for (int layer = 0; layer < from.layers(); ++layer) {
    for (int expert = 0; expert < from.experts(); ++expert) {
      const auto old_owners = from.owners(layer, expert);
      for (const int receiver : to.owners(layer, expert)) {
        if (std::binary_search(old_owners.begin(), old_owners.end(), receiver)) continue;
        const int sender = *std::min_element(old_owners.begin(), old_owners.end(), [&](int a, int b) {
          return sends[static_cast<std::size_t>(a)] < sends[static_cast<std::size_t>(b)];
        });
        ++sends[static_cast<std::size_t>(sender)];
        moves.push_back({layer, expert, sender, receiver});
      }
    }
  }
  return moves;
}

}  // namespace fomoe::costmodel
