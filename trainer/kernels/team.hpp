// The interface of a team: the threads that work on a row together. A team is a block or a warp of GPU
// threads (gpu_team.cuh), or a single CPU thread. Row functions are written once, for any team. So the CPU
// tests run the same expressions as the kernels; with a team of several threads they also test how members
// share the work.
//
// A member has a rank from 0 to size − 1. sum() and largest() give every member the same value; before()
// gives each member its own. All members must reach these calls and wait(), in the same order. Between two
// such calls, no member touches what another one writes.
//
// It is C++17 without LibTorch, since nvcc reads it.
#pragma once
#include <cstdint>
#include <type_traits>

#ifdef __CUDACC__
#define FOMOE_DEVICE __device__
#else
#define FOMOE_DEVICE
#endif

namespace fomoe::trainer {

/// Element types that the kernels take. Sums are fp32 for both.
enum class RowType { fp32, bf16 };

/// The type in which values of type T are summed.
template <class T>
using Sum = std::conditional_t<std::is_same_v<T, double>, double, float>;

/// The sum over the members of lower rank, and the sum over all members.
template <class S>
struct Before {
  S sum, all;
};

struct Alone {
  [[nodiscard]] FOMOE_DEVICE int rank() const { return 0; }
  [[nodiscard]] FOMOE_DEVICE int size() const { return 1; }
  FOMOE_DEVICE void wait() const {}
  template <class S>
  [[nodiscard]] FOMOE_DEVICE S sum(S value) const {
    return value;
  }
  template <class S>
  [[nodiscard]] FOMOE_DEVICE S largest(S value) const {
    return value;
  }
  template <class S>
  [[nodiscard]] FOMOE_DEVICE Before<S> before(S value) const {
    return {0, value};
  }
};

/// W neighbouring elements, aligned so that a GPU thread reads and writes them at once, up to 16 bytes.
template <class T, int W>
struct alignas(W * sizeof(T) < 16 ? W * sizeof(T) : 16) Pack {
  T of[W];
};
template <int W, class T>
FOMOE_DEVICE Pack<T, W> load(const T* from) {
  return *reinterpret_cast<const Pack<T, W>*>(from);
}
template <int W, class T>
FOMOE_DEVICE void store(T* to, const Pack<T, W>& pack) {
  *reinterpret_cast<Pack<T, W>*>(to) = pack;
}

/// Calls f(i) for the first element i of each pack of 0 … n − 1 that belongs to this member; W divides n.
template <int W, class Team, class F>
FOMOE_DEVICE void own_packs(const Team& team, std::int64_t n, const F& f) {
  for (std::int64_t i = std::int64_t{W} * team.rank(); i < n; i += std::int64_t{W} * team.size()) f(i);
}

}  // namespace fomoe::trainer
