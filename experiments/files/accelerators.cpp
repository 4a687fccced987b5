#include "experiments/files/accelerators.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cctype>
#include <stdexcept>

#include "experiments/files/accelerators_toml.hpp"
#include "experiments/text/suggest.hpp"
#include "experiments/text/units.hpp"

namespace fomoe::scenario {
namespace {

constexpr const char* kDtypes[] = {"bf16", "fp16", "fp8", "tf32", "fp32"};

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

/// Reads a text of the catalogue. The catalogue is compiled into the program, so an error in the catalogue is
/// a bug of the program. A test reads the whole catalogue.
std::string text_of(const toml::table& table, const char* key) {
  const auto value = table[key].value<std::string>();
  if (!value) throw std::logic_error(fmt::format("accelerators.toml: {} is missing", key));
  return *value;
}

std::vector<Accelerator> read_accelerators() {
  std::vector<Accelerator> list;
  const toml::table document = toml::parse(kAcceleratorsToml);
  for (const toml::node& node : *document["accelerator"].as_array()) {
    const toml::table& table = *node.as_table();
    Accelerator row;
    row.name = text_of(table, "name");
    row.source = text_of(table, "source");
    row.memory_bytes = parse_quantity(text_of(table, "memory"), Quantity::size);
    row.memory_bytes_per_s = parse_quantity(text_of(table, "memory_bandwidth"), Quantity::rate);
    if (table.contains("usable_memory")) {
      row.usable_memory_bytes = parse_quantity(text_of(table, "usable_memory"), Quantity::size);
      row.usable_source = text_of(table, "usable_source");
    }
    if (table.contains("power")) row.power_w = parse_quantity(text_of(table, "power"), Quantity::power);
    for (const char* dtype : kDtypes) {
      if (table.contains(dtype))
        row.peak_flops[dtype] = parse_quantity(text_of(table, dtype), Quantity::flop_rate);
    }
    for (const toml::node& name : *table["device_names"].as_array())
      row.device_names.push_back(*name.value<std::string>());
    list.push_back(row);
  }
  return list;
}

}  // namespace

const std::vector<Accelerator>& accelerators() {
  static const std::vector<Accelerator> all = read_accelerators();
  return all;
}

const Accelerator* find_accelerator(const std::string& name) {
  for (const Accelerator& row : accelerators()) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

const Accelerator* accelerator_of_device(const std::string& device_name) {
  for (const Accelerator& row : accelerators()) {
    if (std::find(row.device_names.begin(), row.device_names.end(), device_name) != row.device_names.end())
      return &row;
  }
  return find_accelerator(device_name);
}

std::string known_accelerators() {
  std::vector<std::string> names;
  for (const Accelerator& row : accelerators()) names.push_back(row.name);
  return "one of " + joined(names);
}

std::string near_accelerators(const std::string& typed) {
  // "H100" is part of two names, and "h100-sxm" equals one name except for its case.
  std::vector<std::string> near, names;
  for (const Accelerator& row : accelerators()) {
    names.push_back(row.name);
    if (!typed.empty() && lower(row.name).find(lower(typed)) != std::string::npos) near.push_back(row.name);
  }
  return near.empty() ? nearest(typed, names) : joined(near, " or ");
}

std::string known_dtypes(const Accelerator& accelerator) {
  std::vector<std::string> names;
  for (const auto& peak : accelerator.peak_flops) names.push_back(peak.first);
  return joined(names);
}

Provenance from_catalogue(const std::string& what, const std::string& value, const Accelerator& accelerator) {
  return {what, Origin::assumed,
          fmt::format("{} of {}, from the catalogue: {}", value, accelerator.name, accelerator.source)};
}

}  // namespace fomoe::scenario
