// The provenance of numbers. It accompanies every input up to the report, so that a reader never mistakes an
// assumption for a measurement.
#pragma once
#include <string>

namespace fomoe {

/// `calibrated` means that `fomoe calibrate` fitted the number to measurements of another quantity.
enum class Origin { measured, calibrated, computed, assumed };
inline constexpr Origin kOrigins[] = {Origin::measured, Origin::calibrated, Origin::computed,
                                      Origin::assumed};

struct Provenance {
  std::string what;  // the quantity, for instance "step time"
  Origin origin;
  std::string detail;  // source, device, formula or the assumption in words
};

inline const char* to_string(Origin origin) {
  switch (origin) {
    case Origin::measured:
      return "measured";
    case Origin::calibrated:
      return "calibrated";
    case Origin::computed:
      return "computed";
    case Origin::assumed:
      return "assumed";
  }
  return "";
}

}  // namespace fomoe
