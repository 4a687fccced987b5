// What every site does: it measures what rank 0 asks for, in lines of JSON over its control connection.
//
//   {"id": 1, "do": "echo", "limit_s": 20}                             → {"id": 1, "port": 5201}
//   {"id": 2, "do": "ping", "host": …, "port": …, "count": 20, "limit_s": 20} → {"id": 2, "round_trips_s":
//   […]}
//   {"id": 3, "do": "receive", "limit_s": 20}                          → {"id": 3, "port": 5201}
//   {"id": 4, "do": "send", "host": …, "port": …, "streams": 4, "seconds": 3, "omit": 1, "limit_s": 20}
//                                                                      → {"id": 4, "bytes_per_s": …}
//   {"do": "stop", "of": 3}                                            no answer
//   {"do": "end", "error": "…"}                                        the error is empty after a success
//
// What cannot be done is answered with {"id": …, "error": "…"}. Several things go on at the same time.
#pragma once
#include <string>

#include "experiments/probe/line_socket.hpp"

namespace fomoe::probe {

inline constexpr int kPorts = 64;  // how many are tried, from the first on

/// "3.12", or empty where iperf3 is not on PATH.
std::string iperf3_version();

/// Until rank 0 ends it. Returns the error that rank 0 ended it with, or "". Throws ConnectionLost where rank
/// 0 is gone.
std::string serve_site(LineSocket& rank0, int first_port);

}  // namespace fomoe::probe
