// Parses iperf3's JSON report of one transfer (`iperf3 -c HOST -J`).
#pragma once
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

namespace fomoe::probe {

/// An error that iperf3 reported, in its own words.
class Iperf3Error : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A TCP transfer from the client to the server. All numbers exclude the initial interval of --omit.
struct Iperf3Transfer {
  double bytes_per_s = 0;  // payload that the receiver got, sum over all streams
  double seconds = 0;      // duration measured by the receiver
  int streams = 1;
  std::int64_t retransmits = 0;        // segments; 0 if the kernel does not report them
  std::optional<double> round_trip_s;  // the shortest that TCP saw, over all streams
  std::string version;                 // "3.12"
};

/// Throws Iperf3Error if iperf3 reports an error, if the text is not a report of a TCP client, if the test
/// was reversed or bidirectional, and if no payload arrived.
Iperf3Transfer read_iperf3(const std::string& json);

}  // namespace fomoe::probe
