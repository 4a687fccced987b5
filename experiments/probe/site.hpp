// The part of every site in the probe. Each site runs the measurements that rank 0 requests. Requests and
// answers are lines of JSON on the control connection between the site and rank 0:
//
//   {"id": 1, "do": "echo", "limit_s": 20}
//     answer: {"id": 1, "port": 5201}
//   {"id": 2, "do": "ping", "host": …, "port": …, "count": 20, "limit_s": 20}
//     answer: {"id": 2, "round_trips_s": […]}
//   {"id": 3, "do": "receive", "limit_s": 20}
//     answer: {"id": 3, "port": 5201}
//   {"id": 4, "do": "send", "host": …, "port": …, "streams": 4, "seconds": 3, "omit": 1, "limit_s": 20}
//     answer: {"id": 4, "bytes_per_s": …}
//   {"do": "stop", "of": 3}
//     no answer
//   {"do": "end", "error": "…"}
//     no answer; the error is empty after a success
//
// If a request fails, the answer is {"id": …, "error": "…"}. Several requests may run at the same time.
#pragma once
#include <string>

#include "experiments/probe/line_socket.hpp"

namespace fomoe::probe {

inline constexpr int kPorts = 64;  // number of ports to try, from the first one on

/// The version of iperf3, such as "3.12"; empty if iperf3 is not on PATH.
std::string iperf3_version();

/// Serves requests until rank 0 ends the site. Returns the error that rank 0 sent, or "". Throws
/// ConnectionLost if rank 0 is lost.
std::string serve_site(LineSocket& rank0, int first_port);

}  // namespace fomoe::probe
