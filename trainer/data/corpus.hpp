// The tokens to train on or to validate with: one file of token ids, a folder of such files, or synthetic
// tokens. This header does not include LibTorch.
//
//   - Folder: All .bin and .npy files in it, in the order of their paths (token_file.hpp). Each sub-folder is
//     a domain, with all files below it. Files directly in the folder form the domain "". Names that start
//     with a dot are left out.
//   - Synthetic: A Markov chain over the vocabulary V. Token t is followed by (5·t + 7) mod V
//     with probability 0.8, and by a uniformly drawn token otherwise. A model that has learnt the chain has
//     the loss Corpus::synthetic_loss().
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/data/token_file.hpp"

namespace fomoe::trainer {

class Corpus {
 public:
  struct File {
    std::string name;    // relative to the folder; empty if the corpus is not a folder
    std::string domain;  // sub-folder of the first level; empty if the file is in none
    TokenFile tokens;
  };

  /// Opens a file or a folder. Reads the headers of all files and a sample of the tokens. Throws FileError if
  /// a file has another format, or if the sample has an id outside of the vocabulary.
  static Corpus open(const std::string& path, std::int64_t vocabulary);
  /// A folder with these files.
  static Corpus of(std::vector<File> files);
  /// The domain of a file with this name: its sub-folder of the first level.
  static std::string domain_of(const std::string& name);
  static Corpus synthetic(std::int64_t vocabulary, std::int64_t tokens, std::uint64_t seed);
  /// Entropy of the next token of the synthetic chain, in nats.
  static double synthetic_loss(std::int64_t vocabulary);

  [[nodiscard]] const std::vector<File>& files() const { return files_; }
  [[nodiscard]] std::int64_t size() const { return size_; }  // tokens of all files
  /// The tokens at up to 1,024 places, which are evenly spaced over all files, 64 from each place on. These
  /// are all tokens if there are at most 65,536.
  [[nodiscard]] std::vector<std::int64_t> sample() const;

 private:
  void add(File file);

  std::vector<File> files_;
  std::int64_t size_ = 0;
};

}  // namespace fomoe::trainer
