// The results of training runs that `fomoe-train grid` wrote (rows.csv), as the figures use them.
#pragma once
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "experiments/figures/assumptions.hpp"

namespace fomoe::figures {

/// What distinguishes two trained models, apart from the seed. Methods are named by their outer optimiser, as
/// in the paper: full replicas with Nesterov are DiLoCo, and fomoe in which every site holds every expert is
/// the same method as full replicas.
struct Setting {
  std::string outer;  // "nesterov", "local_adamw", "centralised", or another method's name
  std::int64_t local_steps = 1;
  int sites = 1, overlap = 1;
  std::string placement;  // empty if every site holds every expert
  bool skip_token = false;
  std::int64_t d_model = 0, layers = 0, experts = 0;
  std::map<std::string, std::string>
      others;  // other keys that the grid varied, such as trainer.learning_rate

  [[nodiscard]] bool full_replica() const { return overlap == sites; }
  friend auto operator<=>(const Setting&, const Setting&) = default;
};

/// Experts that a token of the proxy uses.
inline constexpr double kActive = 4;

/// The runs of one setting, which differ in their seeds.
struct TrainedRuns {
  std::vector<double> losses;       // in nats, of the models with the experts of all sites
  std::vector<double> site_losses;  // means over the models of the sites
  /// ln((H − ln k) ÷ (ln n − ln k)) with the mean entropy H of the routers, the n experts among which they
  /// choose and the k that a token uses: H is at least ln k, when all tokens use the same k. 0 if n = k.
  std::vector<double> evenness;
  std::vector<std::string> seed_names;                      // of these values
  double router_entropy = 0, load_cv = 0, ghost_share = 0;  // means over seeds
  double bytes_per_site = 0;                                // sent in the whole run, mean over sites
  double flops = 0;  // of the whole run, executed at all sites together
  [[nodiscard]] std::size_t seeds() const { return losses.size(); }
  [[nodiscard]] double loss() const;
  [[nodiscard]] double site_loss() const;
};

using Trained = std::map<Setting, TrainedRuns>;

/// Which numbers of a setting's seeds are compared: one of the vectors above.
using OfSeeds = std::vector<double> TrainedRuns::*;
double mean_of(const TrainedRuns& runs, OfSeeds values);

/// The perplexity of a loss. A printed perplexity that was stored as its logarithm comes back as printed.
double perplexity_of(double loss);

/// Without the settings that diverged: those with more than twice the smallest perplexity among the settings
/// with as many sites.
Trained without_diverged(const Trained& trained);

/// Reads the text of a rows.csv. `name` is used in messages. Throws FileError if a column is missing or a
/// cell is wrong.
Trained trained_runs(const std::string& text, const std::string& name);

/// The rows of the repository's grids with these names (experiments/proxies/results), together; or those of
/// the file that the assumption "rows" names.
Trained trained_runs(Assumptions& assume, const std::vector<std::string>& grids);

}  // namespace fomoe::figures
