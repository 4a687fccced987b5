// The FoMoE paper's cost model as printed, in its own symbols (arXiv 2606.19025, sections "Compute and Memory
// Scaling" to "Wall-Clock Time Model" and the appendix "Theoretical Foundations and Cost Modeling"). The
// planner's own closed form also counts latency, whole rounds and the mechanism as it is implemented. Where
// the paper's assumptions hold, the paper's formula and the closed form give equal results, which a test
// shows.
#pragma once
#include "costmodel/inputs/scenario.hpp"
#include "costmodel/plan/method.hpp"
#include "costmodel/plan/plan_summary.hpp"
#include "costmodel/report/run_report.hpp"

namespace fomoe::costmodel::paper {

// NOLINTBEGIN(readability-identifier-naming): the names are the paper's symbols
struct Symbols {
  double M = 1;         // sites
  double O_e = 1;       // number of sites that hold each expert
  double K = 1;         // local steps between two synchronisations
  double gamma = 0;     // reshuffles per round: 1 ÷ rounds between two reshuffles; 0: fixed placement
  double rho = 1;       // bytes after compression ÷ bytes before, (0, 1]
  double alpha = 0;     // share of the communication that compute hides
  double S_dense = 0;   // bytes
  double S_expert = 0;  // bytes of all experts of all layers: Σ_ℓ N_e · s_expert
  double N_tok = 0;     // tokens
  double B_g = 1;       // tokens of the global batch
  double B_eff = 1;     // bytes per second
  double F_token = 0;   // FLOPs per token of one worker
  double MFU = 1;
  double Phi_peak = 1;  // FLOP/s of one worker
  /// Factor on the bytes of all-reduces: 3 if the optimiser's moments are averaged too (LocalAdamW),
  /// otherwise 1. Migrations do not have this factor, because the moments of a migrated expert restart and
  /// are never sent.
  double state_factor = 1;
};

double R(double O_e);                          // 2(O_e − 1)/O_e
double P(double O_e, double M, double gamma);  // γ(1 − O_e/M)
double B_dense(const Symbols& s);              // 2(M − 1)/M · S_dense, × state_factor
double B_sparse(const Symbols& s);    // (state_factor · R + P) · Σ N_le · s_expert, N_le = O_e/M · N_e
double B_per_site(const Symbols& s);  // B_dense + B_sparse, bytes per round
double BPT(const Symbols& s);         // M · B_per_site / (K · B_g): bytes of a site per token of that site
double t_comp(const Symbols& s);      // F_token · (B_g/M) / (MFU · Φ_peak)
double t_comm(const Symbols& s);      // ρ · B_per_site / B_eff
double rounds(const Symbols& s);      // N_tok / (K · B_g), not rounded up
double T_tot(const Symbols& s);       // rounds · [K · t_comp + (1 − α) · t_comm]

// --- regions of the appendix "Optimization Surface"

/// The paper describes these regions in words. The definitions here are exact interpretations:
enum class Region {
  communication_bound = 1,  // communication takes longer than compute, and not because of migration
  memory_constrained = 2,   // compute takes longer, and every site holds more than half of the experts
  sweet_spot = 3,           // compute takes longer, and a site holds at most half of the experts
  placement_collapse = 4,   // communication takes longer, and would not without migration
};
Region region(const Symbols& s);
/// The region of a computed or simulated run, by its reported times. If the scenario gives the GPU memory,
/// `memory_constrained` means that the fullest GPU needs more than this memory. Otherwise the definition
/// above applies.
Region region(const Scenario& scenario, const RunReport& report);
const char* to_string(Region region);

// --- Prediction 1: "the broadcast volume follows C · (1 − O_e/M)"

/// Share of a site's experts that a reshuffle replaces: 1 − O_e/M. Only this share falls linearly in O_e.
double migrated_fraction(double O_e, double M);
/// Bytes that a site receives in one reshuffle: S_expert · (O_e/M) · (1 − O_e/M). The prediction's factor C
/// contains N_le, the number of experts per layer at a site. N_le grows with O_e, so the volume is not linear
/// in O_e. The volume rises from O_e = 1 to its peak at O_e = M/2.
double migrated_bytes(double S_expert, double O_e, double M);

/// The factor (R + P) · O_e/M = 2(O_e − 1)/M + γ(O_e/M)(1 − O_e/M), to which the sparse bytes are
/// proportional. Its derivative with respect to O_e is 2/M + γ(1/M)(1 − 2·O_e/M) ≥ (2 − γ)/M > 0, so the
/// factor rises with O_e for every γ ≤ 1. Hence O_e = 1 always sends least. The paper's "placement convexity"
/// and an optimal O_e above 1 do not follow from the equation.
double sparse_factor(double O_e, double M, double gamma);

// --- Prediction 2: "throughput rises faster than 1/O_e"

/// Largest local batch of one site in tokens: (memory − bytes_per_parameter · parameters held) ÷ activation
/// bytes per token; 0 if the parameters alone do not fit.
double largest_local_batch(double memory_bytes, double dense_parameters, double expert_parameters, double O_e,
                           double M, double bytes_per_parameter, double activation_bytes_per_token);
/// Tokens per second of all sites with local batches of B_l tokens: M·K·B_l / (K·t_comp + (1 − α)·t_comm),
/// with t_comp proportional to B_l.
double throughput(const Symbols& s, double B_l);

// NOLINTEND(readability-identifier-naming)

// --- The plan of a method, as the equations count it

/// Bytes that a site sends per round if no round is the last: experts then move after every T-th round, so
/// that γ = 1/T. A run that ends moves none after its last round.
SentBytes sent_without_end(const Method& method, Axes axes, const Fixed& fixed);

}  // namespace fomoe::costmodel::paper
