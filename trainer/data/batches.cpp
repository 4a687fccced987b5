#include "trainer/data/batches.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <stdexcept>

#include "costmodel/math/random.hpp"
#include "trainer/data/deal.hpp"

namespace fomoe::trainer {

namespace {

// Streams of random numbers. The pass is added to the first; the number of the list takes the upper 32 bits.
constexpr std::uint64_t kPassStream = 0x0bade7, kDealStream = 0x1d0dea1;

std::int64_t sum(const std::vector<std::int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::int64_t{0});
}

/// Number of sequences that each file has.
std::vector<std::int64_t> sequences_of(const Corpus& corpus, std::int64_t length) {
  std::vector<std::int64_t> counts;
  for (const Corpus::File& file : corpus.files()) counts.push_back((file.tokens.size() - 1) / length);
  return counts;
}

/// The files of each domain.
std::map<std::string, std::vector<std::size_t>> domains_of(const Corpus& corpus) {
  std::map<std::string, std::vector<std::size_t>> domains;
  for (std::size_t f = 0; f < corpus.files().size(); ++f) domains[corpus.files()[f].domain].push_back(f);
  return domains;
}

/// How many of `wanted` sequences come from each file: as many from each domain, and within a domain as many
/// from each file, as far as they have that many.
std::vector<std::int64_t> evenly(const Corpus& corpus, const std::vector<std::int64_t>& available,
                                 std::int64_t wanted) {
  const auto domains = domains_of(corpus);
  std::vector<std::vector<std::int64_t>> of_files;
  std::vector<std::int64_t> of_domains;
  for (const auto& [domain, files] : domains) {
    of_files.emplace_back();
    for (const std::size_t f : files) of_files.back().push_back(available[f]);
    of_domains.push_back(sum(of_files.back()));
  }
  const std::vector<std::int64_t> shares = deal_evenly(of_domains, wanted);
  std::vector<std::int64_t> taken(available.size());
  std::size_t d = 0;
  for (const auto& [domain, files] : domains) {
    const std::vector<std::int64_t> counts = deal_evenly(of_files[d], shares[d]);
    for (std::size_t i = 0; i < files.size(); ++i) taken[files[i]] = counts[i];
    ++d;
  }
  return taken;
}

}  // namespace

DataSplit data_split(const std::string& name) {
  if (name == "iid") return DataSplit::iid;
  return name == "domain" ? DataSplit::domain : DataSplit::shared;
}

Batches::Batches(Corpus corpus, std::int64_t sequence_length, std::int64_t global_batch,
                 std::int64_t validation_sequences, std::uint64_t seed, const SiteData& sites,
                 std::optional<Corpus> validation_corpus)
    : corpus_(std::move(corpus)),
      validation_corpus_(std::move(validation_corpus)),
      length_(sequence_length),
      global_batch_(global_batch),
      seed_(seed) {
  const std::vector<std::int64_t> own = sequences_of(corpus_, length_);
  std::vector<std::int64_t> training = own;
  if (validation_corpus_) {
    const std::vector<std::int64_t> others = sequences_of(*validation_corpus_, length_);
    if (sum(others) < validation_sequences) {
      throw std::invalid_argument(
          "trainer.validation_data: got enough tokens for " + std::to_string(sum(others)) + " sequences of " +
          std::to_string(length_) +
          " tokens; expected trainer.validation_sequences = " + std::to_string(validation_sequences) +
          "; for example --set trainer.validation_sequences=" + std::to_string(sum(others)));
    }
    const std::vector<std::int64_t> taken = evenly(*validation_corpus_, others, validation_sequences);
    for (std::size_t f = 0; f < taken.size(); ++f) {
      for (std::int64_t i = 0; i < taken[f]; ++i) validation_.push_back({f, i});
    }
  } else {
    const std::vector<std::int64_t> taken = evenly(corpus_, own, validation_sequences);
    for (std::size_t f = 0; f < taken.size(); ++f) {
      training[f] -= taken[f];
      for (std::int64_t i = training[f]; i < own[f]; ++i) validation_.push_back({f, i});
    }
  }
  if (sum(training) < 1) {
    throw std::invalid_argument(
        "trainer.data: got a corpus of " + std::to_string(corpus_.size()) + " tokens; expected enough for " +
        std::to_string(validation_corpus_ ? 0 : validation_sequences) +
        " validation sequences and one training sequence of " + std::to_string(length_) + " tokens each");
  }
  if (sum(training) > std::numeric_limits<Number>::max()) {
    throw std::invalid_argument("trainer.data: got " + std::to_string(sum(training)) +
                                " sequences; expected at most " +
                                std::to_string(std::numeric_limits<Number>::max()) +
                                "; for example fewer files, or a longer model.sequence_length");
  }
  for (const std::int64_t count : training) starts_.push_back(starts_.back() + count);
  deal(sites);
}

// Makes the lists.
void Batches::deal(const SiteData& sites) {
  const std::int64_t all = training_sequences();
  if (sites.split == DataSplit::shared) {
    lists_ = {{0, global_batch_, {{0, all}}}};
    return;
  }
  std::int64_t first = 0;
  for (const std::int64_t part : sites.sequences_per_step) {
    if (part > 0) lists_.push_back({first, part, {}});
    first += part;
  }
  if (sites.split == DataSplit::iid) {
    dealt_.resize(static_cast<std::size_t>(all));
    std::iota(dealt_.begin(), dealt_.end(), Number{0});
    costmodel::RandomEngine engine = costmodel::seeded_engine(seed_, kDealStream);
    costmodel::shuffle(dealt_, engine);
    for (List& list : lists_)
      list.ranges = {{all * list.first / first, all * (list.first + list.per_step) / first}};
  } else {
    const auto domains = domains_of(corpus_);
    if (domains.size() < lists_.size()) {
      throw std::invalid_argument(
          "trainer.data_split: got \"domain\" with " + std::to_string(domains.size()) + " domains for " +
          std::to_string(lists_.size()) +
          " sites; expected a sub-folder of trainer.data for each site; for example --set "
          "trainer.data_split=iid");
    }
    std::vector<std::int64_t> sizes;
    for (const auto& [domain, files] : domains) {
      sizes.push_back(0);
      for (const std::size_t f : files) sizes.back() += corpus_.files()[f].tokens.size();
    }
    const std::vector<std::size_t> site_of = deal_by_size(sizes, lists_.size());
    std::size_t d = 0;
    for (const auto& [domain, files] : domains) {
      List& list = lists_[site_of[d]];
      for (const std::size_t f : files) list.ranges.emplace_back(starts_[f], starts_[f + 1]);
      list.files.insert(list.files.end(), files.begin(), files.end());
      ++d;
    }
  }
  for (std::size_t i = 0; i < lists_.size(); ++i) {
    if (std::any_of(lists_[i].ranges.begin(), lists_[i].ranges.end(),
                    [](const auto& range) { return range.first < range.second; }))
      continue;
    throw std::invalid_argument("trainer.data: got no training sequence of " + std::to_string(length_) +
                                " tokens for site " + std::to_string(i + 1) + " of " +
                                std::to_string(lists_.size()) +
                                "; expected at least one for each site; for example --set "
                                "trainer.data_split=shared, or fewer trainer.validation_sequences");
  }
}

std::vector<std::vector<std::size_t>> Batches::files_of_sites() const {
  std::vector<std::vector<std::size_t>> files;
  for (const List& list : lists_) files.push_back(list.files);
  return files;
}

Batches::Sequence Batches::at_position(List& list, std::int64_t position) const {
  std::int64_t size = 0;
  for (const auto& [begin, end] : list.ranges) size += end - begin;
  const std::int64_t pass = position / size;
  if (pass != list.pass) {
    list.order.clear();
    list.order.reserve(static_cast<std::size_t>(size));
    for (const auto& [begin, end] : list.ranges) {
      for (std::int64_t i = begin; i < end; ++i)
        list.order.push_back(dealt_.empty() ? static_cast<Number>(i) : dealt_[static_cast<std::size_t>(i)]);
    }
    const auto which = static_cast<std::uint64_t>(&list - lists_.data());
    costmodel::RandomEngine engine =
        costmodel::seeded_engine(seed_, (which << 32) + kPassStream + static_cast<std::uint64_t>(pass));
    costmodel::shuffle(list.order, engine);
    list.pass = pass;
  }
  const std::int64_t number = list.order[static_cast<std::size_t>(position % size)];
  const auto after = std::upper_bound(starts_.begin(), starts_.end(), number);  // files may have no sequences
  const auto file = static_cast<std::size_t>(after - starts_.begin() - 1);
  return {file, number - starts_[file]};
}

Batch Batches::read(const Corpus& corpus, const std::vector<Sequence>& sequences) const {
  const auto count = static_cast<std::int64_t>(sequences.size());
  const at::Tensor text = at::empty({count, length_ + 1}, at::kLong);
  std::int64_t* out = text.mutable_data_ptr<std::int64_t>();
  for (const Sequence& sequence : sequences) {
    corpus.files()[sequence.file].tokens.copy(sequence.index * length_, length_ + 1, out);
    out += length_ + 1;
  }
  return {text.narrow(1, 0, length_).contiguous(), text.narrow(1, 1, length_).contiguous()};
}

Batch Batches::of_step(std::int64_t step, std::int64_t first, std::int64_t count) {
  std::vector<Sequence> sequences;
  for (std::int64_t j = first; j < first + count; ++j) {
    const auto next = std::find_if(lists_.begin(), lists_.end(), [&](const List& l) { return l.first > j; });
    List& list = *(next - 1);
    sequences.push_back(at_position(list, step * list.per_step + j - list.first));
  }
  return read(corpus_, sequences);
}

Batch Batches::validation(std::int64_t first, std::int64_t count) const {
  const auto begin = validation_.begin() + first;
  return read(validation_corpus_ ? *validation_corpus_ : corpus_, {begin, begin + count});
}

}  // namespace fomoe::trainer
