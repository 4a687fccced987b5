#include "tests/trainer/moe_reference.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace fomoe::trainer {
namespace {

double sigmoid(double z) { return 1 / (1 + std::exp(-z)); }
double silu(double z) { return z * sigmoid(z); }
// d/dz z·σ(z) = σ(z)·(1 + z·(1 − σ(z)))
double silu_slope(double z) { return sigmoid(z) * (1 + z * (1 - sigmoid(z))); }

std::size_t at2(int i, int j, int columns) { return static_cast<std::size_t>(i) * columns + j; }
std::size_t at3(int i, int j, int k, int rows, int columns) { return at2(i * rows + j, k, columns); }

/// Intermediate results of one token at one local expert that it chose.
struct Visit {
  int token, scored, local;
  double gate;
  std::vector<double> h;  // [d_expert], before SiLU
  std::vector<double> y;  // [d], before the gate
};

std::vector<Visit> visits(const MoeReference& m) {
  std::vector<Visit> out;
  for (int t = 0; t < m.tokens; ++t) {
    std::vector<double> gate(m.scored);
    for (int e = 0; e < m.scored; ++e) {
      double score = 0;
      for (int i = 0; i < m.d; ++i) score += m.x[at2(t, i, m.d)] * m.router[at2(i, e, m.scored)];
      gate[e] = sigmoid(score);
    }
    std::vector<int> order(m.scored);
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int a, int b) { return gate[a] > gate[b]; });
    for (int j = 0; j < m.chosen; ++j) {
      const int local = m.local_index[order[j]];
      if (local < 0) continue;  // a ghost
      Visit v{t, order[j], local, gate[order[j]], std::vector<double>(m.d_expert), std::vector<double>(m.d)};
      for (int f = 0; f < m.d_expert; ++f) {
        for (int i = 0; i < m.d; ++i) v.h[f] += m.x[at2(t, i, m.d)] * m.up[at3(local, i, f, m.d, m.d_expert)];
        for (int i = 0; i < m.d; ++i) v.y[i] += silu(v.h[f]) * m.down[at3(local, f, i, m.d_expert, m.d)];
      }
      out.push_back(std::move(v));
    }
  }
  return out;
}

}  // namespace

std::vector<double> moe_reference_forward(const MoeReference& m) {
  std::vector<double> y(m.x.size());
  for (const Visit& v : visits(m)) {
    for (int i = 0; i < m.d; ++i) y[at2(v.token, i, m.d)] += v.gate * v.y[i];
  }
  return y;
}

MoeGradients moe_reference_backward(const MoeReference& m, const std::vector<double>& d_y) {
  MoeGradients g{std::vector<double>(m.x.size()), std::vector<double>(m.router.size()),
                 std::vector<double>(m.up.size()), std::vector<double>(m.down.size())};
  for (const Visit& v : visits(m)) {
    // y_t += gate·y_e, gate = σ(score):  d gate = dy_t·y_e,  d score = d gate·gate(1 − gate)
    double d_gate = 0;
    for (int i = 0; i < m.d; ++i) d_gate += d_y[at2(v.token, i, m.d)] * v.y[i];
    const double d_score = d_gate * v.gate * (1 - v.gate);
    for (int i = 0; i < m.d; ++i) {
      g.router[at2(i, v.scored, m.scored)] += d_score * m.x[at2(v.token, i, m.d)];
      g.x[at2(v.token, i, m.d)] += d_score * m.router[at2(i, v.scored, m.scored)];
    }
    // y_e = SiLU(h)·W_down, h = x·W_up
    for (int f = 0; f < m.d_expert; ++f) {
      double d_a = 0;
      for (int i = 0; i < m.d; ++i) {
        const double d_ye = v.gate * d_y[at2(v.token, i, m.d)];
        g.down[at3(v.local, f, i, m.d_expert, m.d)] += silu(v.h[f]) * d_ye;
        d_a += d_ye * m.down[at3(v.local, f, i, m.d_expert, m.d)];
      }
      const double d_h = d_a * silu_slope(v.h[f]);
      for (int i = 0; i < m.d; ++i) {
        g.up[at3(v.local, i, f, m.d, m.d_expert)] += d_h * m.x[at2(v.token, i, m.d)];
        g.x[at2(v.token, i, m.d)] += d_h * m.up[at3(v.local, i, f, m.d, m.d_expert)];
      }
    }
  }
  return g;
}

}  // namespace fomoe::trainer
