// Tests that headers of checkpoints with impossible shapes are refused by name; the fuzzer gave some of them
// (tests/fuzz).
#include "trainer/io/safetensors.hpp"

#include <filesystem>
#include <string>

#include "platforms/support/atomic_file.hpp"
#include "platforms/support/whole_file.hpp"
#include "tests/trainer/support.hpp"

using namespace fomoe::trainer;

namespace {

/// Reads a file with one tensor `a` of this shape, whose data are the bytes from `begin` to `end`.
SafetensorsFile read(const std::string& shape, int begin, int end) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("fomoe-shape-" + std::to_string(::getpid()))).string();
  const std::string header = R"({"__metadata__":{},"a":{"dtype":"F32","shape":)" + shape +
                             R"(,"data_offsets":[)" + std::to_string(begin) + "," + std::to_string(end) +
                             R"(]},"b":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})";
  std::string length(8, '\0');
  length[0] = static_cast<char>(header.size());
  fomoe::write_file(path, length + header + std::string(16, '\0'));
  struct Removed {
    const std::string& path;
    ~Removed() { std::filesystem::remove(path); }
  } removed{path};
  return read_safetensors(path);
}

}  // namespace

TEST_CASE("a tensor of a checkpoint has whole extents whose product and strides do not overflow") {
  CHECK(read("[2,2]", 0, 16).tensors.at("a").numel() == 4);
  CHECK(read("[0,7]", 0, 0).tensors.at("a").numel() == 0);
  for (const char* shape : {"[2.5]", "[1e300]", "[4,1.0]", "[-4]", "[18446744073709551615]", "[true]",
                            "{\"x\":4}", "4", "[[4]]"}) {
    CAPTURE(shape);
    CHECK_THROWS_AS(read(shape, 0, 16), UnusableFile);
  }
  // No bytes, but LibTorch cannot compute the strides, and would throw an error of its own.
  for (const char* shape :
       {"[0,4611686018427387904,4611686018427387904]", "[4611686018427387904,4611686018427387904,0]"}) {
    CAPTURE(shape);
    CHECK_THROWS_AS(read(shape, 0, 0), UnusableFile);
  }
}

TEST_CASE("a file whose tensors were altered is refused, whether it is read or only checked") {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("fomoe-altered-" + std::to_string(::getpid()))).string();
  // 4 MiB and a little more, so that the check reads it in two pieces; 3 bytes more than whole words.
  const at::Tensor large = at::arange(1 << 20, at::kFloat), small = at::ones({3}, at::kFloat);
  write_safetensors(path, {{"large", large}, {"small", small}}, {{"key", "value"}});
  CHECK(checked_safetensors_metadata(path).at("key") == "value");
  CHECK(read_safetensors(path).tensors.at("large").equal(large));
  std::string whole = *fomoe::whole_file(path);
  for (const std::size_t from_end : {1, 13, 100'000}) {
    std::string other = whole;
    other[other.size() - from_end] = static_cast<char>(other[other.size() - from_end] ^ 1);
    fomoe::write_file(path, other);
    CHECK_THROWS_AS(read_safetensors(path), UnusableFile);
    CHECK_THROWS_AS(checked_safetensors_metadata(path), UnusableFile);
  }
  std::filesystem::remove(path);
}
