#include "trainer/data/corpus.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <system_error>
#include <utility>

#include "costmodel/math/random.hpp"
#include "experiments/scenario/scenario_reader.hpp"

namespace fomoe::trainer {

namespace {

namespace fs = std::filesystem;

constexpr double kPredictable = 0.8;
constexpr std::int64_t kPlaces = 1'024, kTokensPerPlace = 64;

/// Adds the token files in the folder and below it. `prefix` is put before their names. (LibTorch exports the
/// functions of another std::filesystem, of which remove_all() crashes; so this avoids the recursive
/// iterator, of which it consists.)
void add_token_files(const std::string& folder, const std::string& prefix, std::vector<std::string>& names) {
  std::error_code error;
  fs::directory_iterator at(folder, error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) {
    const fs::path& path = at->path();
    const std::string name = path.filename().string();
    if (name.starts_with('.')) continue;
    std::error_code ignored;  // a link to nothing is no folder; opening it explains what is wrong
    if (fs::is_directory(path, ignored)) {
      add_token_files(path.string(), prefix + name + '/', names);
    } else if (path.extension() == ".bin" || path.extension() == ".npy") {
      names.push_back(prefix + name);
    }
  }
  if (error) throw FileError(folder + ": cannot be read: " + error.message());
}

}  // namespace

void Corpus::add(File file) {
  size_ += file.tokens.size();
  files_.push_back(std::move(file));
}

Corpus Corpus::open(const std::string& path, std::int64_t vocabulary) {
  Corpus corpus;
  std::error_code ignored;  // opening the file explains what is wrong
  if (fs::is_directory(path, ignored)) {
    std::vector<std::string> names;
    add_token_files(path, "", names);
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) {
      corpus.add({name, domain_of(name), TokenFile::open((fs::path(path) / name).string(), vocabulary)});
    }
    if (corpus.files_.empty())
      throw FileError(path +
                      ": got a folder without token files; expected .bin or .npy files in it or in its " +
                      "sub-folders; for example " + (fs::path(path) / "web/00000.bin").string());
  } else {
    corpus.add({"", "", TokenFile::open(path, vocabulary)});
  }
  (void)corpus.sample();
  return corpus;
}

Corpus Corpus::of(std::vector<File> files) {
  Corpus corpus;
  for (File& file : files) corpus.add(std::move(file));
  return corpus;
}

std::string Corpus::domain_of(const std::string& name) {
  const std::size_t slash = name.find('/');
  return slash == std::string::npos ? "" : name.substr(0, slash);
}

Corpus Corpus::synthetic(std::int64_t vocabulary, std::int64_t tokens, std::uint64_t seed) {
  std::vector<std::uint32_t> ids(static_cast<std::size_t>(tokens));
  costmodel::RandomEngine engine = costmodel::seeded_engine(seed, 0x70cea5);
  std::uint64_t token = 0;
  const auto v = static_cast<std::uint64_t>(vocabulary);
  for (std::uint32_t& id : ids) {
    id = static_cast<std::uint32_t>(token);
    const bool predictable = costmodel::below(engine, 1000) < static_cast<std::uint64_t>(1000 * kPredictable);
    token = predictable ? (5 * token + 7) % v : costmodel::below(engine, v);
  }
  Corpus corpus;
  corpus.add({"", "", TokenFile::in_memory(ids, vocabulary)});
  return corpus;
}

double Corpus::synthetic_loss(std::int64_t vocabulary) {
  const auto v = static_cast<double>(vocabulary);
  const double other = (1 - kPredictable) / v, likely = kPredictable + other;
  return -likely * std::log(likely) - (v - 1) * other * std::log(other);
}

std::vector<std::int64_t> Corpus::sample() const {
  const std::int64_t places = std::min(kPlaces, (size_ + kTokensPerPlace - 1) / kTokensPerPlace);
  std::vector<std::int64_t> tokens;
  auto file = files_.begin();
  std::int64_t before = 0;  // tokens of the files before `file`
  for (std::int64_t i = 0; i < places; ++i) {
    const std::int64_t place = i * size_ / places;
    while (place >= before + file->tokens.size()) before += (file++)->tokens.size();
    std::int64_t begin = place - before;
    auto from = file;
    for (std::int64_t left = std::min(kTokensPerPlace, size_ - place); left > 0; ++from, begin = 0) {
      const std::int64_t count = std::min(left, from->tokens.size() - begin);
      const std::size_t sampled = tokens.size();
      tokens.resize(sampled + static_cast<std::size_t>(count));
      from->tokens.copy(begin, count, tokens.data() + sampled);
      left -= count;
    }
  }
  return tokens;
}

}  // namespace fomoe::trainer
