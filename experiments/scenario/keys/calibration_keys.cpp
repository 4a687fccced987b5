// Keys that say which keys of [network_model] were fitted to measurements.
#include "experiments/scenario/keys/key_tables.hpp"

namespace fomoe::scenario {

constexpr Key kCalibrationKeys[] = {
    {"terms", Kind::words, "", "none",
     "keys of network_model that `fomoe calibrate` fitted; reports mark them as calibrated",
     "[\"latency_factor\"]"},
    {"runs", Kind::words, "", "none",
     "ids of the runs that were used for the fit; `fomoe validate` refuses these runs",
     "[\"0123456789abcdef\"]"},
};

std::vector<Key> calibration_keys() { return keys_in("calibration", kCalibrationKeys); }

}  // namespace fomoe::scenario
