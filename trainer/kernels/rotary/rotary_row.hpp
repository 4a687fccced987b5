// The arithmetic of rotary.hpp for one token that a team works on. It is C++17 without LibTorch, since nvcc
// reads it.
#pragma once
#include "trainer/kernels/team.hpp"

namespace fomoe::trainer {

/// qkv [tokens, 3, heads, 2·half], cos and sin [positions, half], q, k and v [tokens, heads, 2·half], all of
/// one type T. Token t is at position t mod positions. Only the backward pass uses q, k and v: the gradients
/// of q and k, which the forward pass rotates in their places in qkv, and of v.
struct Rotary {
  void *qkv, *q, *k, *v;
  const void *cos, *sin;
  std::int64_t tokens, positions, heads, half;
};

/// (a, b) ← (a·cos − b·sin, b·cos + a·sin), computed in Sum<T> and rounded once. `direction` −1 rotates
/// backwards.
template <class T, int W>
FOMOE_DEVICE void rotate(const Pack<T, W>& a, const Pack<T, W>& b, const Pack<T, W>& cos,
                         const Pack<T, W>& sin, Sum<T> direction, Pack<T, W>& out_a, Pack<T, W>& out_b) {
  using S = Sum<T>;
  for (int w = 0; w < W; ++w) {
    const S x = static_cast<S>(a.of[w]), y = static_cast<S>(b.of[w]);
    const S c = static_cast<S>(cos.of[w]), s = direction * static_cast<S>(sin.of[w]);
    out_a.of[w] = static_cast<T>(x * c - y * s);
    out_b.of[w] = static_cast<T>(y * c + x * s);
  }
}

/// Rotates the q and k of a token in their places in qkv.
template <class T, int W, class Team>
FOMOE_DEVICE void rotary_token(const Team& team, const Rotary& a, std::int64_t token) {
  const std::int64_t position = token % a.positions * a.half, width = a.heads * a.half;
  const T *cos = static_cast<const T*>(a.cos) + position, *sin = static_cast<const T*>(a.sin) + position;
  T* own = static_cast<T*>(a.qkv) + token * 6 * width;
  // i counts the pairs of q's heads, then the pairs of k's. The first elements of two heads are 2·half apart.
  own_packs<W>(team, 2 * width, [&](std::int64_t i) {
    const std::int64_t pair = i % a.half, at = 2 * i - pair;
    Pack<T, W> out_a, out_b;
    rotate<T, W>(load<W>(own + at), load<W>(own + at + a.half), load<W>(cos + pair), load<W>(sin + pair), 1,
                 out_a, out_b);
    store<W>(own + at, out_a);
    store<W>(own + at + a.half, out_b);
  });
}

/// Writes the gradient of qkv from those of q, k and v. The gradient of a rotation is the opposite rotation.
template <class T, int W, class Team>
FOMOE_DEVICE void rotary_token_backward(const Team& team, const Rotary& a, std::int64_t token) {
  const std::int64_t position = token % a.positions * a.half, width = a.heads * a.half;
  const T *cos = static_cast<const T*>(a.cos) + position, *sin = static_cast<const T*>(a.sin) + position;
  T* out = static_cast<T*>(a.qkv) + token * 6 * width;
  own_packs<W>(team, 3 * width, [&](std::int64_t i) {
    const std::int64_t pair = i % a.half, at = 2 * i - pair, part = i / width;
    const void* gradient = part == 0 ? a.q : part == 1 ? a.k : a.v;
    const T* in = static_cast<const T*>(gradient) + token * 2 * width + at - part * 2 * width;
    Pack<T, W> out_a = load<W>(in), out_b = load<W>(in + a.half);
    if (part < 2) {
      const Pack<T, W> in_a = out_a, in_b = out_b;
      rotate<T, W>(in_a, in_b, load<W>(cos + pair), load<W>(sin + pair), -1, out_a, out_b);
    }
    store<W>(out + at, out_a);
    store<W>(out + at + a.half, out_b);
  });
}

}  // namespace fomoe::trainer
