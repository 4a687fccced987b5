// What vendors say of their accelerators, for devices that nobody has measured: always an assumption.
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
  double memory_bytes = 0;
  double memory_bytes_per_s = 0;
  std::optional<double> power_w;          // of the board; nothing: its vendor does not say
  std::vector<std::string> device_names;  // what drivers call it
  std::string source;                     // the vendor's document
};

/// All of experiments/data/accelerators.toml, in its order.
const std::vector<Accelerator>& accelerators();
/// nullptr where there is none of that name. Names are compared as written.
const Accelerator* find_accelerator(const std::string& name);
/// The one that a driver calls so, or nullptr.
const Accelerator* accelerator_of_device(const std::string& device_name);

/// "one of A100-40GB-SXM, …" and the names near to `typed`, with " or " between, for the message about an
/// unknown one.
std::string known_accelerators();
std::string near_accelerators(const std::string& typed);

/// "bf16, fp16": the formats it has a peak of.
std::string known_dtypes(const Accelerator& accelerator);

/// What the catalogue says of `what`, as a report states it.
Provenance from_catalogue(const std::string& what, const std::string& value, const Accelerator& accelerator);

}  // namespace fomoe::scenario
