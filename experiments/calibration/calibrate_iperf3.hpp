// `fomoe calibrate` for iperf3 reports: fits two terms, the TCP window and the share of a link's rate that is
// available for payload.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "experiments/calibration/calibration.hpp"

namespace fomoe::commands {

/// Returns whether the file is an iperf3 report, i.e. a JSON object with "start" and "end". Returns false for
/// files that cannot be read.
bool is_iperf3_report(const std::string& path);

/// Throws FileError for other outputs of iperf3, and for those of similar programs: text, events, several
/// reports in one file, tables of nccl-tests, ping. Says what is read.
void refuse_other_iperf3_output(const std::string& path);

/// Fits bandwidth_efficiency and tcp_window to the rates of single transfers of n streams over a link:
///   rate = min(efficiency · link rate, n · window ÷ RTT)
/// flow_cap_bytes_per_s limits the rate of a transfer with the same two terms. The window is fitted only if
/// it improves the fit by more than chance. The RTT is `round_trip_s` if given, otherwise the mean RTT that
/// TCP measured, which each report states. Throws FileError for files that are not iperf3 reports. Throws
/// InputError for a transfer that is faster than the link or has no RTT, and std::runtime_error if the best
/// fit does not describe the transfers.
Calibration calibrate_iperf3(const std::vector<std::string>& paths, double link_bytes_per_s,
                             std::optional<double> round_trip_s);

}  // namespace fomoe::commands
