// The results of a grid as CSV tables: one row for each run, the spread over seeds, and a table for the
// planner.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trainer/grid/grid_file.hpp"

namespace fomoe::trainer {

/// What a run's report says about its training.
struct GridResult {
  double loss = 0;            // in nats per token, of the model with the experts of all sites
  double mean_site_loss = 0;  // mean over the models of the sites
  /// Figures of the routers (router_figures.hpp), means over sites and layers.
  double router_entropy = 0, load_cv = 0, ghost_share = 0;
  double seconds =
      0;  // wall clock of the process that trained all sites; of the last part, if it was resumed
  bool resumed = false;
  std::string data;          // what was trained on, in words; "" in tables of older versions
  std::string device, code;  // name of the processor; version and commit of the program
};

/// Reads a report that `fomoe-train run --in-turn --output` wrote. Returns nothing if the file is not there
/// or not such a report.
std::optional<GridResult> read_result(const std::string& path);

/// The results in a table that rows_csv() wrote, by the id of the run; empty if there is no such file. Throws
/// FileError if the file is another one.
std::map<std::string, GridResult> read_rows(const std::string& path);

/// The results in the order of the grid's runs; empty where a run is not finished.
using GridResults = std::vector<std::optional<GridResult>>;

/// One row for each finished run. The first columns are the settings, then follow the seed, what is computed
/// from the settings (parameters, FLOPs, bytes sent), and the results.
std::string rows_csv(const Grid& grid, const GridResults& results);

/// One row for runs that differ only in the seed: their number, and mean and sample standard deviation of
/// their results. The standard deviation is empty with one seed, and if a run diverged.
std::string summary_csv(const Grid& grid, const GridResults& results);

/// The mean perplexities as a table for quality.file, or an empty text if no run fits into one. The table
/// contains the runs that differ from the first one only in what its columns express, without those whose
/// mean over seeds is not finite. Notes say how many runs were left out.
std::string quality_csv(const Grid& grid, const GridResults& results, const std::string& source);

}  // namespace fomoe::trainer
