// The catalogue of accelerators with their datasheet values, for devices that were not measured. Its values
// always count as assumptions.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "platforms/provenance.hpp"

namespace fomoe::scenario {

struct Accelerator {
  std::string name;                          // "H100-SXM"
  std::map<std::string, double> peak_flops;  // FLOP/s of dense matrix products, by number format
  double memory_bytes = 0;                   // of the datasheet
  /// What CUDA tells programs that the device has (total_memory); empty: not found.
  std::optional<double> usable_memory_bytes;
  std::string usable_source;
  double memory_bytes_per_s = 0;
  std::optional<double> power_w;          // watts of the board; empty if the vendor does not state it
  std::vector<std::string> device_names;  // names that drivers report
  std::string source;                     // the vendor's document
};

/// All entries of experiments/data/accelerators.toml, in file order.
const std::vector<Accelerator>& accelerators();
/// Returns nullptr if no entry has this name. Names are case-sensitive.
const Accelerator* find_accelerator(const std::string& name);
/// The entry whose device names contain the given one, or nullptr.
const Accelerator* accelerator_of_device(const std::string& device_name);

/// All names as text for an error message: "one of A100-40GB-SXM, …".
std::string known_accelerators();
/// The names closest to `typed`, joined with " or ", for an error message.
std::string near_accelerators(const std::string& typed);

/// "bf16, fp16": the number formats whose peak is known.
std::string known_dtypes(const Accelerator& accelerator);

/// A catalogue value with its source, as a report states it.
Provenance from_catalogue(const std::string& what, const std::string& value, const Accelerator& accelerator);

}  // namespace fomoe::scenario
