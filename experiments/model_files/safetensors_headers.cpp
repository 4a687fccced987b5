#include "experiments/model_files/safetensors_headers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "experiments/scenario/toml/document.hpp"
#include "experiments/text/nesting.hpp"
#include "platforms/support/file_claims.hpp"
#include "platforms/support/whole_file.hpp"

namespace fomoe::scenario {

namespace {

constexpr std::uint64_t kLargestHeader = 100'000'000;  // bytes; the limit of the format's own library
constexpr std::int64_t kMostElements = std::int64_t{1} << 53;

[[noreturn]] void refuse(const std::string& path, const std::string& got, const std::string& expected) {
  fail(path + ":1", "model.safetensors", got, expected, "model.safetensors from a model's repository");
}

// A header may have 100,000 tensors. In the project's JSON type, which keeps the order of keys, each look-up
// of a name would visit them all.
using Header = nlohmann::json;

Header read_header(const std::string& path) {
  if (const std::string special = special_file(path); !special.empty())
    refuse(path, special, "a regular file");
  note_input(path);
  std::ifstream file(path, std::ios::binary);
  std::array<unsigned char, 8> bytes{};
  file.read(reinterpret_cast<char*>(bytes.data()), bytes.size());
  if (file.bad()) refuse(path, "an error while its header was read", "a file that can be read");
  if (!file) refuse(path, "a file of less than 8 bytes", "8 bytes with the length of a header");
  std::uint64_t length = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) length = length << 8U | bytes[i];
  if (length < 2 || length > kLargestHeader)
    refuse(path, fmt::format("a header of {} bytes", length),
           fmt::format("a header of 2 to {} bytes", kLargestHeader));
  std::string text(static_cast<std::size_t>(length), '\0');
  file.read(text.data(), static_cast<std::streamsize>(length));
  if (file.bad()) refuse(path, "an error while its header was read", "a file that can be read");
  if (static_cast<std::uint64_t>(file.gcount()) != length)
    refuse(path, fmt::format("{} bytes of a header of {}", file.gcount(), length), "the whole header");
  if (const std::string excess = excess_in_sorted_json(text, /*names=*/true); !excess.empty())
    refuse(path, "a header of " + excess, "tensors by their names");
  Header header = Header::parse(text, nullptr, false);
  if (!header.is_object()) refuse(path, "a header that is not a JSON object", "tensors by their names");
  return header;
}

TensorHeader read_tensor(const std::string& path, const std::string& name, const Header& json) {
  const auto is_size = [](const Header& size) {
    return size.is_number_integer() && size.get<std::int64_t>() >= 0 &&
           size.get<std::int64_t>() < kMostElements;
  };
  if (!json.is_object() || !json.contains("dtype") || !json["dtype"].is_string() || !json.contains("shape") ||
      !json["shape"].is_array() || !std::all_of(json["shape"].begin(), json["shape"].end(), is_size)) {
    refuse(path,
           fmt::format("{} for the tensor {}", json.dump(-1, ' ', false, Header::error_handler_t::replace),
                       name),
           "its dtype and its shape");
  }
  TensorHeader tensor{name, json["dtype"], json["shape"].get<std::vector<std::int64_t>>(), path};
  double elements = 1;
  for (const std::int64_t size : tensor.shape) elements *= static_cast<double>(size);
  if (elements > static_cast<double>(kMostElements))
    refuse(path, fmt::format("{:.3g} elements of the tensor {}", elements, name),
           "a tensor that fits a machine");
  return tensor;
}

// A model of several files has an index, which names the file of each tensor: a folder may have other copies
// of the model. Empty if there is no index.
std::set<std::string> files_of_index(const std::string& folder) {
  const std::filesystem::path index = std::filesystem::path(folder) / "model.safetensors.index.json";
  const std::optional<std::string> text = whole_file(index.string());
  if (!text) return {};
  if (const std::string excess = excess_in_sorted_json(*text, /*names=*/true); !excess.empty())
    refuse(index.string(), excess, "an index with the file of each tensor");
  const Header json = Header::parse(*text, nullptr, false);
  if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object())
    refuse(index.string(), "no weight_map", "an index with the file of each tensor");
  std::set<std::string> files;
  for (const auto& [tensor, name] : json["weight_map"].items()) {
    if (!name.is_string() || !path_exists((std::filesystem::path(folder) / name.get<std::string>()).string()))
      refuse(index.string(),
             fmt::format("the file {} of the tensor {}, which is missing",
                         name.dump(-1, ' ', false, Header::error_handler_t::replace), tensor),
             "all files of the model in the folder");
    files.insert(name.get<std::string>());
  }
  return files;
}

}  // namespace

std::int64_t TensorHeader::elements() const {
  // The product of the other sizes may be too large for an integer if one size is 0.
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  std::int64_t product = 1;
  for (const std::int64_t size : shape) product *= size;
  return product;
}

std::vector<TensorHeader> read_safetensors_headers(const std::string& folder) {
  const std::set<std::string> of_index = files_of_index(folder);
  std::vector<std::string> paths;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (entry.path().extension() != ".safetensors") continue;
    if (of_index.empty() || of_index.contains(entry.path().filename().string()))
      paths.push_back(entry.path().string());
  }
  if (paths.empty())
    refuse(folder, "a folder without *.safetensors files", "the folder of a model's weights");
  std::sort(paths.begin(), paths.end());
  std::vector<TensorHeader> tensors;
  std::map<std::string, std::string> file_of;
  for (const std::string& path : paths) {
    const Header header = read_header(path);
    for (const auto& [name, json] : header.items()) {
      if (name == "__metadata__") continue;
      tensors.push_back(read_tensor(path, name, json));
      const auto [found, added] = file_of.emplace(name, path);
      if (!added)
        refuse(path, fmt::format("the tensor {}, which {} contains as well", name, found->second),
               "one model in the folder");
    }
  }
  if (tensors.empty()) refuse(folder, "files without tensors", "the folder of a model's weights");
  return tensors;
}

}  // namespace fomoe::scenario
