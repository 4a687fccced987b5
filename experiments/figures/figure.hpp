// Computes the figures and tables of the FoMoE paper, one source file each, with all assumptions.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "costmodel/inputs/scenario.hpp"
#include "experiments/results/json_values.hpp"

namespace fomoe::figures {

using scenario::Json;
using Cell = std::variant<std::string, double, std::int64_t>;

/// The data of a figure, written as ID.csv and ID.json. Both have the same rows; the JSON adds assumptions
/// and findings.
struct Figure {
  std::vector<std::string> columns;  // with units
  std::vector<std::vector<Cell>> rows;
  Json assumptions = Json::object();
  Json findings = Json::object();
  std::vector<std::string> notes;
};

struct Experiment {
  std::string_view id;
  std::string_view sentence;
  Figure (*make)();
};
std::span<const Experiment> experiments();

Figure parameter_distribution();
Figure table_models();
Figure flops_scaling();
Figure comms_scaling();
Figure time_scaling();
Figure headline();
Figure predictions();

std::string csv_text(const Figure& figure);
std::string json_text(const Experiment& experiment, const Figure& figure);

// --- shared by several figures -------------------------------------------------------------------------

/// A model of the paper's family with width d = `d_model` and the given number of layers. It has heads of
/// width 64, N_e = 4·d/128 experts of width 128 per layer, of which each token uses k = N_e/4, a vocabulary
/// of 200,019 tokens, and sequences of 2048 tokens.
costmodel::ModelShape family_member(std::int64_t d_model, std::int64_t layers);

/// A scenario with the paper's global batch of 1024 sequences, identical sites, DiLoCo's outer optimiser,
/// bf16 on the wire and ring collectives.
costmodel::Scenario paper_scenario(const costmodel::ModelShape& shape, int sites, std::int64_t local_steps);
inline constexpr std::int64_t kGlobalBatch = 1024;
inline constexpr std::int64_t kTrainingSteps = 640;

inline constexpr double kH100MemoryBytes = 80e9;
double gbit_per_s(double rate);  // converts bytes per second
}  // namespace fomoe::figures
