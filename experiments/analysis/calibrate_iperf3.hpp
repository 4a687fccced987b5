// `fomoe calibrate` of iperf3's reports: what a link gives, and what each stream gets at most.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "experiments/analysis/calibration.hpp"

namespace fomoe::commands {

/// Whether the file is a report of iperf3 (a JSON object with "start" and "end"). Files that cannot be read
/// are none.
bool is_iperf3_report(const std::string& path);

/// Fits bandwidth_efficiency and tcp_window to the rates of single transfers of n streams over a link:
///   rate = min(efficiency · link rate, n · window ÷ RTT)
/// the same terms as flow_cap_bytes_per_s has them. The window only where more than chance speaks for it.
/// RTT: as given, else TCP's mean of each report. Throws FileError for other reports, InputError for a
/// transfer that is faster than the link or has no RTT.
Calibration calibrate_iperf3(const std::vector<std::string>& paths, double link_bytes_per_s,
                             std::optional<double> round_trip_s);

}  // namespace fomoe::commands
