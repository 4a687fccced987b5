// The data of a run, opened as the scenario's [trainer] table says.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "costmodel/plan/plan.hpp"
#include "experiments/scenario/trainer_section.hpp"
#include "trainer/data/batches.hpp"
#include "trainer/data/file_list.hpp"
#include "trainer/rendezvous/rendezvous.hpp"

namespace fomoe::trainer {

/// Whether a RunData::description() is that of synthetic tokens, which are no text.
inline bool is_synthetic(const std::string& description) { return description.starts_with("synthetic"); }

/// Throws UsageError if no sequences are left for a validation.
void require_validation(const scenario::TrainerSettings& settings);

/// Opens the files without reading them, and deals the sequences to the sites of the plan. Throws FileError
/// and UsageError.
///
/// With trainer.data_split = "domain", a site needs no files but its own. The processes then list their files
/// to each other, and deal() deals the sequences of all of them.
struct RunData {
  RunData(const costmodel::Scenario& scenario, const scenario::TrainerSettings& settings,
          const costmodel::Plan& plan);

  /// Whether sites may lack the files of others.
  [[nodiscard]] bool by_site() const { return !path.empty() && split == DataSplit::domain; }
  /// The files of this process.
  [[nodiscard]] FileList own_files() const { return file_list(corpus); }
  static constexpr int kNoSite = -1;
  /// Deals all files of the processes' lists. `site_of` has the site of each list, or kNoSite if it has all
  /// files of a run. All processes get the same lists, and say the same if a site lacks its files.
  void deal(const std::vector<FilesAt>& lists, const std::vector<int>& site_of);
  /// Every process lists its files to the others, and all files are dealt. `names` and `counts` are those of
  /// the processes, and of the processes of each site. The files of absent sites are those in the list that a
  /// process keeps beside its checkpoints.
  void deal_among(Rendezvous& rendezvous, const std::vector<std::string>& names,
                  const std::vector<int>& counts, const std::string& checkpoints);
  void keep_list(const std::string& checkpoints) const;
  /// Distinguishes data (agreement.hpp); the same at all sites, after deal() if by_site().
  [[nodiscard]] std::string hash() const;

  /// The data of a paced run, which reads none, of any model: a few tokens, whatever the scenario names.
  static RunData unread(costmodel::Scenario scenario, const costmodel::Plan& plan);

  /// What is trained on, in words: "corpus/train, 5,123,456 tokens" with the last two names of the path, or
  /// "synthetic: …" if the scenario names no data.
  [[nodiscard]] std::string description() const;
  /// What the loss is validated on, in the same words: trainer.validation_data, or else the end of the data.
  [[nodiscard]] std::string validation_description() const;

  std::string path;             // trainer.data; empty: synthetic tokens
  std::string validation_path;  // trainer.validation_data; empty: the end of the data
  std::int64_t vocabulary = 0;
  DataSplit split = DataSplit::shared;
  Corpus corpus;
  std::optional<Corpus> validation_corpus;  // trainer.validation_data
  /// Deals a corpus; throws std::invalid_argument.
  std::function<Batches(const Corpus&)> dealt;
  std::vector<int> sites_that_train;  // those that have a part of the batch, in the order of the plan
  std::optional<Batches> batches;     // empty before deal() if by_site()
  FileList files;                     // of all sites, after deal()
};

}  // namespace fomoe::trainer
