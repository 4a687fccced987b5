// What the figures about perplexity share: the points of the paper's tables and of the proxy's runs.
#pragma once
#include <string>
#include <vector>

#include "experiments/figures/figure.hpp"
#include "experiments/figures/trained/claims.hpp"
#include "experiments/figures/trained/trained_runs.hpp"

namespace fomoe::figures {

/// A column of grids in which a random placement may be drawn once: it is then not redrawn in the whole run.
inline constexpr const char* kReshuffle = "strategy.reshuffle_rounds";

/// The rows of tables of the paper as trained runs with one seed each. Bytes and FLOPs are computed for the
/// preset `small`, by the paper's formulas.
enum class PaperRows {
  exp0,   // that table, as printed
  exp1,   // that table, as printed: full replicas are there under both placements
  merged  // both, and of rows with the same setting the first one
};
Trained paper_runs(Assumptions& assume, PaperRows which);

/// The columns of point_rows().
std::vector<std::string> point_columns();

/// One row for each setting for which `wanted` is true. The columns bytes_frontier and flops_frontier say
/// whether the point is on the frontier of perplexity and cost among the rows with as many sites; the
/// centralised run, which sends nothing, is on none.
std::vector<std::vector<Cell>> point_rows(const Trained& trained, const std::string& series,
                                          const std::function<bool(const Setting&)>& wanted);

/// Adds the claims to the figure's findings under "claims", and to its text.
void add_claims(Figure& figure, const std::string& series, const std::vector<Claim>& claims);

/// States what the proxy is.
void state_proxy(Assumptions& assume);

/// The commands that train one point of the proxy anew, see Figure::again. `settings` are options of
/// fomoe-train.
std::string trained_again(const std::string& settings);

}  // namespace fomoe::figures
