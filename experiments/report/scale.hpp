// Chooses one unit for all values of an axis.
#pragma once
#include <string>
#include <string_view>

namespace fomoe::report {

struct Scale {
  double size = 1;   // size of one unit in SI units
  std::string name;  // "min"
};

inline Scale time_scale(double most_s) {
  if (most_s < 1e-3) return {1e-6, "us"};
  if (most_s < 1) return {1e-3, "ms"};
  if (most_s < 120) return {1, "s"};
  if (most_s < 2 * 3600) return {60, "min"};
  if (most_s < 2 * 86400) return {3600, "h"};
  return {86400, "d"};
}

/// Decimal prefixes.
inline Scale bytes_scale(double most) {
  Scale scale = {1, "B"};
  for (const char* name : {"kB", "MB", "GB", "TB", "PB"}) {
    if (most < scale.size * 1000) break;
    scale = {scale.size * 1000, name};
  }
  return scale;
}

/// The classes of bytes, with the names that `fomoe explain` uses.
inline std::string class_name(std::string_view key) {
  if (key == "expert_sync") return "experts";
  if (key == "checkpoint") return "checkpoints";
  if (key == "rejoin") return "returning sites";
  return std::string(key);
}

}  // namespace fomoe::report
