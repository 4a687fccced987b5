// Files of token ids, for tests.
#pragma once
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "experiments/scenario/scenario_reader.hpp"
#include "trainer/data/corpus.hpp"

namespace fomoe::trainer::testing {

/// A folder that is removed with its files.
class TokenFolder {
 public:
  TokenFolder() {
    static std::atomic<int> number = 0;
    path_ = std::string(FOMOE_BINARY_DIR "/tokens-") + std::to_string(::getpid()) + '-' +
            std::to_string(number++);
    make_folder(path_);
  }
  ~TokenFolder() {  // not by std::filesystem::remove_all(), of which LibTorch exports a version that crashes
    for (auto path = made_.rbegin(); path != made_.rend(); ++path) std::remove(path->c_str());
  }
  TokenFolder(const TokenFolder&) = delete;
  TokenFolder& operator=(const TokenFolder&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  /// Writes a file, with the folders above it, and returns its path.
  std::string write(const std::string& name, const std::string& bytes) {
    for (std::size_t slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1))
      make_folder(path_ + '/' + name.substr(0, slash));
    made_.push_back(path_ + '/' + name);
    std::ofstream(made_.back(), std::ios::binary) << bytes;
    return made_.back();
  }

 private:
  void make_folder(const std::string& path) {
    if (::mkdir(path.c_str(), 0777) == 0) made_.push_back(path);
  }

  std::string path_;
  std::vector<std::string> made_;
};

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

/// `count` ids from `first` on, as a .bin file of a small vocabulary has them.
inline std::string counting(std::uint16_t first, std::size_t count) {
  std::vector<std::uint16_t> ids(count);
  std::iota(ids.begin(), ids.end(), first);
  return bytes_of(ids);
}

inline std::string npy(const std::string& type, const std::string& shape, const std::string& data) {
  std::string header = "{'descr': '" + type + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  header.resize(118, ' ');  // 10 + 118 is a multiple of 64, as NumPy pads
  return std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + data;
}

inline std::vector<std::int64_t> ids(const TokenFile& file) {
  std::vector<std::int64_t> out(static_cast<std::size_t>(file.size()));
  file.copy(0, file.size(), out.data());
  return out;
}

/// What Corpus::open() says against it.
inline std::string refusal(const std::string& path, std::int64_t vocabulary) {
  try {
    (void)Corpus::open(path, vocabulary);
  } catch (const FileError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace fomoe::trainer::testing
