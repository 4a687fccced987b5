// What iperf3 says of one transfer (`iperf3 -c HOST -J`).
#pragma once
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

namespace fomoe::probe {

/// What iperf3 could not do, in its own words.
class Iperf3Error : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// TCP from the client to the server; what came before --omit ended is in none of the numbers.
struct Iperf3Transfer {
  double bytes_per_s = 0;  // payload that the receiver got, of all streams
  double seconds = 0;      // as the receiver saw it
  int streams = 1;
  std::int64_t retransmits = 0;        // segments; 0 where the kernel does not say
  std::optional<double> round_trip_s;  // TCP's own mean under this load, of all streams
  std::string version;                 // "3.12"
};

/// Throws Iperf3Error for what iperf3 reports as an error, for text that is no report of a TCP client, for
/// reversed and bidirectional tests, and where nothing arrived.
Iperf3Transfer read_iperf3(const std::string& json);

}  // namespace fomoe::probe
