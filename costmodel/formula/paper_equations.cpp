#include "costmodel/formula/paper_equations.hpp"

#include <algorithm>
#include <cmath>

#include "costmodel/compose/make_plan.hpp"
#include "costmodel/counts/memory.hpp"
#include "costmodel/model/flops.hpp"
#include "costmodel/plan/building_blocks.hpp"
#include "costmodel/plan/site_shares.hpp"

namespace fomoe::costmodel::paper {

double R(double O_e) { return 2 * (O_e - 1) / O_e; }

double P(double O_e, double M, double gamma) { return gamma * (1 - O_e / M); }

double B_dense(const Symbols& s) { return s.state_factor * 2 * (s.M - 1) / s.M * s.S_dense; }

double B_sparse(const Symbols& s) {
  return (s.state_factor * R(s.O_e) + P(s.O_e, s.M, s.gamma)) * s.O_e / s.M * s.S_expert;
}

double B_per_site(const Symbols& s) { return B_dense(s) + B_sparse(s); }

double BPT(const Symbols& s) { return s.M * B_per_site(s) / (s.K * s.B_g); }

double t_comp(const Symbols& s) { return s.F_token * (s.B_g / s.M) / (s.MFU * s.Phi_peak); }

double t_comm(const Symbols& s) { return s.rho * B_per_site(s) / s.B_eff; }

double rounds(const Symbols& s) { return s.N_tok / (s.K * s.B_g); }

double T_tot(const Symbols& s) { return rounds(s) * (s.K * t_comp(s) + (1 - s.alpha) * t_comm(s)); }

Region region(const Symbols& s) {
  const double compute_s = s.K * t_comp(s);
  Symbols fixed = s;
  fixed.gamma = 0;
  if (compute_s < (1 - s.alpha) * t_comm(s)) {
    return compute_s < (1 - s.alpha) * t_comm(fixed) ? Region::communication_bound
                                                     : Region::placement_collapse;
  }
  return s.O_e > s.M / 2 ? Region::memory_constrained : Region::sweet_spot;
}

Region region(const Scenario& scenario, const RunReport& report) {
  const MeanRound& round = report.round;
  if (round.exposed_communication_s > round.compute_s) {
    const SentBytes sent = summarise(scenario).sent;
    const double without_migration = 1 - sent.migration / sent.total();
    return round.exposed_communication_s * without_migration > round.compute_s ? Region::communication_bound
                                                                               : Region::placement_collapse;
  }
  const GpuMemory memory = fullest_gpu(counts_of(scenario));
  const bool constrained = memory.available > 0 ? memory.needed > memory.available
                                                : 2 * effective_overlap(scenario) > scenario.sites();
  return constrained ? Region::memory_constrained : Region::sweet_spot;
}

const char* to_string(Region region) {
  switch (region) {
    case Region::communication_bound:
      return "1: communication-bound";
    case Region::memory_constrained:
      return "2: memory-constrained";
    case Region::sweet_spot:
      return "3: compute-bound with partial replicas";
    case Region::placement_collapse:
      return "4: migration-bound";
  }
  return "";
}

double migrated_fraction(double O_e, double M) { return 1 - O_e / M; }

double migrated_bytes(double S_expert, double O_e, double M) {
  return S_expert * (O_e / M) * migrated_fraction(O_e, M);
}

double sparse_factor(double O_e, double M, double gamma) { return (R(O_e) + P(O_e, M, gamma)) * O_e / M; }

double largest_local_batch(double memory_bytes, double dense_parameters, double expert_parameters, double O_e,
                           double M, double bytes_per_parameter, double activation_bytes_per_token) {
  const double held = dense_parameters + expert_parameters * O_e / M;
  return std::max(0.0, (memory_bytes - bytes_per_parameter * held) / activation_bytes_per_token);
}

double throughput(const Symbols& s, double B_l) {
  const double step_s = s.F_token * B_l / (s.MFU * s.Phi_peak);
  return s.M * s.K * B_l / (s.K * step_s + (1 - s.alpha) * t_comm(s));
}

SentBytes sent_without_end(const Method& method, Axes axes, const Fixed& fixed) {
  axes.tokens *= axes.reshuffle_rounds + 1;  // long enough for experts to move
  const PlanSummary run = summarise(method, axes, fixed);
  const auto rounds = std::llround(run.rounds), period = std::llround(axes.reshuffle_rounds);
  SentBytes sent = run.sent;
  sent.migration *= run.rounds / static_cast<double>(migrations_of(rounds, period) * period);
  return sent;
}

}  // namespace fomoe::costmodel::paper
