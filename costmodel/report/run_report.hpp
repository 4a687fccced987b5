// What every executor answers: closed form, simulation and real training fill the same structure.
// Definitions are beside the fields; the JSON keys have the same names.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "costmodel/inputs/failures.hpp"
#include "costmodel/math/replicas.hpp"
#include "platforms/provenance.hpp"

namespace fomoe::costmodel {

struct SiteReport {
  std::string name;
  double bytes_sent = 0;  // whole run
  double bytes_received = 0;
  double memory_bytes = 0;
  double compute_s = 0;  // mean over rounds
  double exposed_communication_s = 0;
  double idle_s = 0;
};

struct Bottleneck {
  std::string limited_by;      // "compute" or "communication": the larger share of the mean round
  std::string link;            // the busiest uplink, downlink or path
  double link_busy_share = 0;  // its bytes ÷ capacity, over the mean round's duration
};

/// Means over rounds, and over sites where sites differ.
/// duration_s = compute_s + exposed_communication_s + idle_s.
struct MeanRound {
  std::int64_t count = 0;
  double duration_s = 0;
  double compute_s = 0;
  double communication_s = 0;          // first byte wanted to last byte received, hidden or not
  double exposed_communication_s = 0;  // bytes of the site are under way and it does not compute
  double idle_s = 0;                   // neither: it waits for others
  double transferring_s = 0;           // bytes of the site are under way, whether or not it computes
  /// α of the paper as it came out: 1 − exposed ÷ transferring. At most min(1, compute ÷ transferring).
  double overlap_achieved = 0;
};

/// A part of the longest chain of waits in one round: what the round's length is made of.
struct CriticalStep {
  std::string what;  // the operation's name
  std::string site;  // that computes, or for which everybody else waits
  bool transfer = false;
  double seconds = 0;
};

/// Where rounds differ and only some were executed.
struct Interval95 {
  double low = 0, high = 0;
};

/// Of the whole run. Money is in `currency`; without prices it is empty, and only energy is known.
struct Cost {
  std::string currency;
  std::string as_of;      // of the prices
  double cost_total = 0;  // the sum of the four below
  double gpu_cost = 0;
  double egress_cost = 0;
  double port_cost = 0;
  double energy_cost = 0;
  std::optional<double> energy_kwh;  // where the scenario states power
};

/// What the trained model is worth, or why nobody knows.
struct Quality {
  bool known = false;
  double perplexity = 0;
  std::optional<double> plus_minus;  // as the source gives it
  std::string source;
  std::string reason;  // of unknown: what lies outside of the model's range
  /// Wall clock and cost to the loss of data-parallel training ÷ those of this run; a scaling law knows it.
  std::optional<double> equal_loss_factor;
};

inline constexpr std::size_t kListedRounds = 1000;

struct RunReport {
  std::string executor;  // "closed-form", "simulated" or "measured"
  double wall_clock_s = 0;
  double compute_utilization = 0;  // mean over sites of busy compute seconds ÷ wall clock
  double tokens_per_s = 0;         // all sites
  double bytes_per_token = 0;      // Σ bytes sent ÷ Σ tokens processed
  double bytes_sent_per_site_per_round = 0;
  std::int64_t optimizer_steps = 0;
  std::int64_t tokens = 0;
  MeanRound round;
  /// In the plan's order, where every round was executed, none runs on into the next, and there are at most
  /// kListedRounds; else empty. The first one has more to do: connections and memory are new.
  std::vector<double> round_durations_s;
  std::vector<SiteReport> sites;
  std::optional<Interval95> wall_clock_interval_s;  // 95 % confidence, where rounds are a sample
  Bottleneck bottleneck;
  std::vector<CriticalStep> critical_path;  // of one round, where rounds were executed
  std::optional<Cost> cost;                 // where the scenario has prices or power
  std::optional<Quality> quality;           // where the scenario has a quality model
  std::optional<Goodput> goodput;           // where the scenario has failures
  std::optional<Replicas> replicas;         // where several seeds were asked for
  std::vector<Provenance> provenance;
  std::vector<std::string> notes;
};

}  // namespace fomoe::costmodel
