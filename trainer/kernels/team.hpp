// Row functions are written once, for a team that works on a row together: a block or a warp of GPU threads
// (gpu_team.cuh), or a CPU thread alone. So the CPU's tests run the very expressions of the kernels, and with
// a team of several threads also how members share the work.
//
// A member has a rank from 0 to size − 1. sum and largest give every member the same value, before each its
// own; they and wait are reached by all members, in the same order. Between them, no member touches what
// another one writes.
//
// C++17, free of LibTorch: nvcc reads this.
#pragma once
#include <cstdint>
#include <type_traits>

#ifdef __CUDACC__
#define FOMOE_DEVICE __device__
#else
#define FOMOE_DEVICE
#endif

namespace fomoe::trainer {

/// Elements that kernels take. Sums are fp32 for both.
enum class RowType { fp32, bf16 };

/// In which T is summed.
template <class T>
using Sum = std::conditional_t<std::is_same_v<T, double>, double, float>;

/// A sum over the members of lower rank, and over all.
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

/// W neighbouring elements, which a GPU thread reads and writes at once: up to 16 bytes, and aligned so.
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

/// f(i) for the first element of each of a member's packs out of 0 … n − 1; W divides n.
template <int W, class Team, class F>
FOMOE_DEVICE void own_packs(const Team& team, std::int64_t n, const F& f) {
  for (std::int64_t i = std::int64_t{W} * team.rank(); i < n; i += std::int64_t{W} * team.size()) f(i);
}

}  // namespace fomoe::trainer
