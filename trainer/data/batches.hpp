// Determines which sequences are trained on in which step. A step trains on one global batch of B_g
// sequences, of which each site takes a range.
//
// Each file of the corpus is cut into sequences of S tokens. The target of each token is the token after it,
// so a sequence also reads one token beyond its end, but never beyond the end of its file. Some sequences are
// kept for validation; the others are dealt to endless lists. A list passes over its sequences again and
// again, each time in a new order that is drawn from the seed. With DataSplit::shared there is one list for
// all sites, and the global batch does not depend on their number: sequence j of step s is number s·B_g + j
// of the list. Otherwise each site has a list of its own, which contains b sequences for each step, and the
// j-th sequence of the site in step s is number s·b + j of its list.
//
// All of this is a pure function of the seed, the corpus, the split and the sites, so that each process
// computes it alone.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/data/corpus.hpp"
#include "trainer/torch.hpp"

namespace fomoe::trainer {

struct Batch {
  at::Tensor tokens, targets;  // int64 [B, S] on the CPU
};

enum class DataSplit {
  shared,  // every site draws from all sequences
  iid,     // each site has a random subset, in proportion to its part of the global batch
  domain,  // each domain belongs to one site; sites have about the same number of tokens
};
/// By the value of trainer.data_split; empty: shared.
DataSplit data_split(const std::string& name);

/// Which sequences belong to which site.
struct SiteData {
  DataSplit split = DataSplit::shared;
  /// The sites' parts of the global batch, in their order; not needed if the data is shared. 0: not a site
  /// that trains.
  std::vector<std::int64_t> sequences_per_step = {};
};

class Batches {
 public:
  /// `validation_sequences` sequences are never trained on: the last ones of the corpus if it is one file;
  /// otherwise the last ones of its files, as many from each domain. With `validation_corpus`, all sequences
  /// of `corpus` are trained on, and validation uses the first ones of the files of the other corpus. Throws
  /// std::invalid_argument if a corpus is too short, or has fewer domains than there are sites.
  Batches(Corpus corpus, std::int64_t sequence_length, std::int64_t global_batch,
          std::int64_t validation_sequences, std::uint64_t seed, const SiteData& sites = {},
          std::optional<Corpus> validation_corpus = {});

  /// Sequences first … first + count − 1 of the global batch of `step`.
  [[nodiscard]] Batch of_step(std::int64_t step, std::int64_t first, std::int64_t count);
  [[nodiscard]] Batch validation(std::int64_t first, std::int64_t count) const;
  [[nodiscard]] std::int64_t validation_sequences() const {
    return static_cast<std::int64_t>(validation_.size());
  }
  [[nodiscard]] std::int64_t training_sequences() const { return starts_.back(); }
  /// The files of the corpus that each site trains on, by the sites of SiteData that have a part of the
  /// batch; only with DataSplit::domain.
  [[nodiscard]] std::vector<std::vector<std::size_t>> files_of_sites() const;

 private:
  using Number = std::uint32_t;  // of a training sequence: files one after another
  struct Sequence {
    std::size_t file;
    std::int64_t index;  // in the file
  };
  /// The endless list of one site, or of all sites.
  struct List {
    std::int64_t first = 0, per_step = 0;                       // its part of the global batch
    std::vector<std::pair<std::int64_t, std::int64_t>> ranges;  // [begin, end) of its sequences in dealt_
    std::int64_t pass = -1;                                     // of `order`
    std::vector<Number> order = {};                             // of the sequences in one pass
    std::vector<std::size_t> files = {};                        // of its domains
  };
  void deal(const SiteData& sites);
  [[nodiscard]] Sequence at_position(List& list, std::int64_t position) const;
  [[nodiscard]] Batch read(const Corpus& corpus, const std::vector<Sequence>& sequences) const;

  Corpus corpus_;
  std::optional<Corpus> validation_corpus_;
  std::int64_t length_, global_batch_;
  std::uint64_t seed_;
  std::vector<Sequence> validation_;
  std::vector<std::int64_t> starts_ = {0};  // number of the first training sequence of each file, and the sum
  std::vector<Number> dealt_;               // all training sequences in random order; empty: in their order
  std::vector<List> lists_;
};

}  // namespace fomoe::trainer
