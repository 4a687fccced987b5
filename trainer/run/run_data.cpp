#include "trainer/run/run_data.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <stdexcept>

#include "experiments/text/human.hpp"
#include "platforms/support/atomic_file.hpp"
#include "platforms/support/input_error.hpp"
#include "platforms/support/whole_file.hpp"
#include "trainer/comm/site_ranks.hpp"
#include "trainer/run/agreement.hpp"

namespace fomoe::trainer {
namespace {

// Enough tokens for several passes to differ, and few enough to generate at once.
constexpr std::int64_t kSyntheticTokens = 1'000'000;
constexpr const char* kListOfFiles = "/files.json";  // in the directory of checkpoints

std::optional<Corpus> opened(const std::string& path, const costmodel::Scenario& scenario) {
  if (path.empty()) return std::nullopt;
  return Corpus::open(path, scenario.model.vocabulary);
}

Corpus training_corpus(const costmodel::Scenario& scenario, const std::string& path) {
  if (auto given = opened(path, scenario)) return *given;
  return Corpus::synthetic(scenario.model.vocabulary, kSyntheticTokens, scenario.seed);
}

/// Throws UsageError instead of std::invalid_argument.
template <class Call>
auto said_to_the_user(const Call& call) {
  try {
    return call();
  } catch (const std::invalid_argument& error) {
    throw UsageError(error.what());
  }
}

/// The last two names of a path, and the number of tokens.
std::string described(const std::string& path, const Corpus& corpus) {
  std::filesystem::path whole = std::filesystem::path(path).lexically_normal();
  if (!whole.has_filename()) whole = whole.parent_path();  // "corpus/train/"
  const std::string folder = whole.parent_path().filename().string();
  return (folder.empty() ? "" : folder + '/') + whole.filename().string() + ", " +
         commands::human_whole(static_cast<double>(corpus.size())) + " tokens";
}

/// The names of the processes that lack a file which another one has.
std::string lacking(const FileList& all, const std::vector<FilesAt>& lists) {
  std::string names;
  for (const FilesAt& list : lists)
    if (list.files.size() < all.size()) names += (names.empty() ? "" : ", ") + list.who;
  return names;
}

}  // namespace

RunData::RunData(const costmodel::Scenario& scenario, const scenario::TrainerSettings& settings,
                 const costmodel::Plan& plan)
    : path(settings.data),
      validation_path(settings.validation_data),
      vocabulary(scenario.model.vocabulary),
      split(data_split(settings.data_split)),
      corpus(training_corpus(scenario, settings.data)),
      validation_corpus(opened(settings.validation_data, scenario)) {
  SiteData sites = {split};
  for (const costmodel::Node& node : plan.nodes) {
    sites.sequences_per_step.push_back(static_cast<std::int64_t>(node.sequences));
    if (sites.sequences_per_step.back() > 0) sites_that_train.push_back(node.site);
  }
  dealt = [length = scenario.model.sequence_length, batch = scenario.workload.global_batch_sequences,
           kept = settings.validation_sequences, seed = scenario.seed, sites, validation = validation_corpus](
              const Corpus& of) { return Batches(of, length, batch, kept, seed, sites, validation); };
  if (!by_site()) batches = said_to_the_user([&] { return dealt(corpus); });
}

void RunData::deal(const std::vector<FilesAt>& lists, const std::vector<int>& site_of) {
  said_to_the_user([&] {
    files = united(lists);
    corpus = with_files_elsewhere(corpus, files);
    batches = dealt(corpus);
    const std::vector<std::vector<std::size_t>> wanted = batches->files_of_sites();
    for (std::size_t i = 0; i < lists.size(); ++i) {
      for (std::size_t s = 0; s < sites_that_train.size(); ++s)
        if (sites_that_train[s] == site_of[i]) check_has(lists[i], wanted[s], files, lists);
    }
    const std::string without = lacking(files, lists);
    if (!validation_corpus && batches->validation_sequences() > 0 && !without.empty())
      throw std::invalid_argument(
          "trainer.validation_data: got nothing, although not all sites have the files whose ends would be "
          "the "
          "validation data (" +
          without +
          "); expected data for validation that all sites have; for example --set "
          "trainer.validation_data=held-out.bin, or --set trainer.validation_sequences=0");
  });
}

void RunData::deal_among(Rendezvous& rendezvous, const std::vector<std::string>& names,
                         const std::vector<int>& counts, const std::string& checkpoints) {
  const std::string known = checkpoints.empty() ? "" : whole_file(checkpoints + kListOfFiles).value_or("");
  const std::vector<std::string> own = rendezvous.gather("files", to_text(own_files())),
                                 kept = rendezvous.gather("files of the run", known);
  std::vector<FilesAt> lists;
  std::vector<int> sites;
  std::string absent;
  said_to_the_user([&] {
    for (std::size_t rank = 0; rank < own.size(); ++rank) {
      if (own[rank].empty()) {
        absent += (absent.empty() ? "" : ", ") + names[rank];
        continue;
      }
      lists.push_back({names[rank], file_list_from(own[rank])});
      sites.push_back(site_place(static_cast<int>(rank), counts).site);
    }
    if (absent.empty()) return;
    const auto any =
        std::find_if(kept.begin(), kept.end(), [](const std::string& text) { return !text.empty(); });
    if (any == kept.end())
      throw std::invalid_argument("--checkpoints: got no files.json, although " + absent +
                                  " is absent, whose files it lists; expected the directory of the run that "
                                  "goes on; for example a copy of another site's files.json");
    lists.push_back({"the beginning of the run", file_list_from(*any)});
    sites.push_back(kNoSite);
  });
  deal(lists, sites);
}

void RunData::keep_list(const std::string& checkpoints) const {
  if (!by_site()) return;
  std::filesystem::create_directories(checkpoints);
  write_file(checkpoints + kListOfFiles, to_text(files));
}

std::string RunData::hash() const {
  if (!by_site()) return hash_of(corpus);
  return hash_of(files.empty() ? own_files() : files);
}

std::string RunData::description() const {
  if (!path.empty()) return described(path, corpus);
  char loss[32];
  std::snprintf(loss, sizeof loss, "%.3f", Corpus::synthetic_loss(vocabulary));
  return std::string(
             "synthetic: a Markov chain, because the scenario names no trainer.data; the lowest loss "
             "that a model can reach is ") +
         loss + " nats per token";
}

std::string RunData::validation_description() const {
  return validation_corpus ? described(validation_path, *validation_corpus) : description();
}

void require_validation(const scenario::TrainerSettings& settings) {
  if (settings.validation_sequences > 0) return;
  throw UsageError(
      "trainer.validation_sequences: got 0; expected at least 1; for example --set "
      "trainer.validation_sequences=64");
}

RunData RunData::unread(costmodel::Scenario scenario, const costmodel::Plan& plan) {
  scenario.model.vocabulary = 256;
  scenario.model.sequence_length = 1;
  return {scenario, {}, plan};
}

}  // namespace fomoe::trainer
