#include "costmodel/placement.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>

#include "costmodel/random.hpp"

namespace fomoe::costmodel {

namespace {

// Expert e on workers (e·O_e … e·O_e + O_e − 1) mod M. Every worker appears N_e·O_e/M times, and never twice
// for one expert because O_e ≤ M.
int cyclic_owner(int expert, int slot, int workers, int overlap) {
  return static_cast<int>((static_cast<std::int64_t>(expert) * overlap + slot) % workers);
}

// held[w] = experts of worker w in one layer. A trade pools what only one of two workers holds and deals it
// out again at random: it keeps every expert's and every worker's count. Repeated trades approach the uniform
// distribution over such assignments (Strona et al. 2014, "curveball").
void trade(std::vector<int>& a, std::vector<int>& b, RandomEngine& engine) {
  std::vector<int> both, only_a, only_b;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  std::set_difference(a.begin(), a.end(), both.begin(), both.end(), std::back_inserter(only_a));
  std::set_difference(b.begin(), b.end(), both.begin(), both.end(), std::back_inserter(only_b));
  std::vector<int> pool = only_a;
  pool.insert(pool.end(), only_b.begin(), only_b.end());
  shuffle(pool, engine);
  const auto split = pool.begin() + static_cast<std::ptrdiff_t>(only_a.size());
  a = both;
  a.insert(a.end(), pool.begin(), split);
  b = both;
  b.insert(b.end(), split, pool.end());
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
}

}  // namespace

Placement::Placement(int layers, int experts, int workers, int overlap)
    : layers_(layers),
      experts_(experts),
      workers_(workers),
      overlap_(overlap),
      owners_(static_cast<std::size_t>(layers) * static_cast<std::size_t>(experts) *
              static_cast<std::size_t>(overlap)) {
  assert(overlap >= 1 && overlap <= workers && (static_cast<std::int64_t>(overlap) * experts) % workers == 0);
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
  const int experts_per_block = blocks ? experts / (workers / overlap) : 0;
  for (int layer = 0; layer < layers; ++layer) {
    for (int expert = 0; expert < experts; ++expert) {
      const auto owners = placement.mutable_owners(layer, expert);
      for (int slot = 0; slot < overlap; ++slot) {
        owners[static_cast<std::size_t>(slot)] = blocks ? (expert / experts_per_block) * overlap + slot
                                                        : cyclic_owner(expert, slot, workers, overlap);
      }
      std::sort(owners.begin(), owners.end());
    }
  }
  return placement;
}

Placement random_placement(int layers, int experts, int workers, int overlap, std::uint64_t seed,
                           std::uint64_t epoch) {
  Placement placement(layers, experts, workers, overlap);
  RandomEngine engine = seeded_engine(seed, epoch);
  std::vector<int> worker_of(static_cast<std::size_t>(workers));
  for (int layer = 0; layer < layers; ++layer) {
    // Relabelling workers and experts at random makes every (expert, worker) pair equally likely, exactly:
    // O_e/M. The trades before it make the sets of owners vary beyond shifts of one pattern.
    std::iota(worker_of.begin(), worker_of.end(), 0);
    shuffle(worker_of, engine);
    std::vector<int> expert_of(static_cast<std::size_t>(experts));
    std::iota(expert_of.begin(), expert_of.end(), 0);
    shuffle(expert_of, engine);

    std::vector<std::vector<int>> held(static_cast<std::size_t>(workers));
    for (int expert = 0; expert < experts; ++expert) {
      for (int slot = 0; slot < overlap; ++slot) {
        held[static_cast<std::size_t>(cyclic_owner(expert, slot, workers, overlap))].push_back(expert);
      }
    }
    for (auto& experts_of_worker : held) std::sort(experts_of_worker.begin(), experts_of_worker.end());
    if (overlap < workers) {
      for (int sweep = 0; sweep < 4; ++sweep) {
        for (std::size_t a = 0; a < held.size(); ++a) {
          const std::size_t b = (a + 1 + below(engine, held.size() - 1)) % held.size();
          trade(held[a], held[b], engine);
        }
      }
    }

    std::vector<int> filled(static_cast<std::size_t>(experts), 0);
    for (std::size_t w = 0; w < held.size(); ++w) {
      for (const int e : held[w]) {
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
