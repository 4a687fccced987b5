// The interface of a team: the threads that work on a row together. A team is a block or a warp of GPU
// threads (gpu_team.cuh), or a single CPU thread. Each row function is written once, for any team, so the CPU
// tests run the same expressions as the kernels. Tests with a team of several threads also check how the
// members share the work.
//
// Each member has a rank from 0 to size − 1. sum() and largest() combine the members' values and give every
// member the same result; before() gives each member a result of its own. All members must call sum(),
// largest(), before() and wait() in the same order. Between two such calls, no member may touch what another
// member writes.
//
// This header is C++17 without LibTorch, since nvcc reads it.
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

/// W neighbouring elements. The alignment lets a GPU thread read or write up to 16 bytes at once.
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

/// Divides the elements 0 … n − 1 into packs of W, where W divides n. Calls f(i) for each pack that belongs
/// to this member, with i the first element of the pack.
template <int W, class Team, class F>
FOMOE_DEVICE void own_packs(const Team& team, std::int64_t n, const F& f) {
  for (std::int64_t i = std::int64_t{W} * team.rank(); i < n; i += std::int64_t{W} * team.size()) f(i);
}

}  // namespace fomoe::trainer
