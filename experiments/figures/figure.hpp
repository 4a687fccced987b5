// Computes the figures and tables of the FoMoE paper, one source file each, with all assumptions, and the
// table of published runs.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "costmodel/inputs/scenario.hpp"
#include "experiments/figures/assumptions.hpp"
#include "experiments/results/json_values.hpp"

namespace fomoe::figures {

using scenario::Json;
using Cell = std::variant<std::string, double, std::int64_t>;

/// The data of a figure, written as ID.csv and ID.json. Both have the same rows; the JSON adds assumptions
/// (see Assumptions) and findings.
struct Figure {
  std::vector<std::string> columns;  // with units
  std::vector<std::vector<Cell>> rows;
  Json findings = Json::object();
  std::vector<std::string> notes;
  /// What the command prints instead of the findings as JSON; empty: the findings.
  std::string text = {};
  /// Commands that make one point of the figure anew, each in a line that ends with what it takes, beside the
  /// command for the whole figure.
  std::string again = {};
};

struct Experiment {
  std::string_view id;
  std::string_view sentence;
  Figure (*make)(Assumptions&);
};
std::span<const Experiment> experiments();

Figure parameter_distribution(Assumptions& assume);
Figure table_models(Assumptions& assume);
Figure table_perplexity(Assumptions& assume);
Figure flops_scaling(Assumptions& assume);
Figure comms_scaling(Assumptions& assume);
Figure time_scaling(Assumptions& assume);
Figure headline(Assumptions& assume);
Figure predictions(Assumptions& assume);
Figure full_replicas(Assumptions& assume);
Figure expert_overlap(Assumptions& assume);
Figure skip_tokens(Assumptions& assume);
Figure learning_rates(Assumptions& assume);
Figure training_choices(Assumptions& assume);
Figure skip_throughput(Assumptions& assume);
Figure published_runs(Assumptions& assume);

std::string csv_text(const Figure& figure);
std::string json_text(const Experiment& experiment, const Figure& figure, const Json& assumptions);

// --- shared by several figures -------------------------------------------------------------------------

/// A model of the paper's family with width d = `d_model` and the given number of layers. It has heads of
/// width 64, N_e = 4·d/128 experts of width 128 per layer, of which each token uses k = N_e/4, a vocabulary
/// of 200,019 tokens, and sequences of 2048 tokens. The vocabulary and the sequences are assumptions.
costmodel::ModelShape family_member(Assumptions& assume, std::int64_t d_model, std::int64_t layers);

/// A scenario with 640 steps of the paper's global batch of 1024 sequences, identical sites, DiLoCo's outer
/// optimiser, K = 32, placements that are redrawn in each round, bf16 on the wire and ring collectives. The
/// batch, K, the redraws, the format and the collective are assumptions. Transfers do not overlap with
/// compute, as in the paper's equations.
costmodel::Scenario paper_scenario(Assumptions& assume, const costmodel::ModelShape& shape, int sites);

inline constexpr std::int64_t kTrainingSteps = 640;
inline constexpr double kH100MemoryBytes = 80e9;
double gbit_per_s(double rate);  // converts bytes per second
}  // namespace fomoe::figures
