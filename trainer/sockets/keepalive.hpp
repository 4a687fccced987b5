// TCP keepalive for connections that a library has opened. A round may last for hours, in which nothing is
// sent; firewalls and address translation forget connections that are idle for some minutes.
#pragma once

namespace fomoe::trainer {

/// Seconds without data until the kernel sends a probe, seconds between probes, and the number of probes
/// without an answer after which the connection counts as lost.
struct Keepalive {
  int idle_s = 60, interval_s = 15, probes = 8;
};

/// Sets keepalive on every TCP connection of this process that has none yet. Returns their number.
int keep_connections_alive(const Keepalive& how = {});

}  // namespace fomoe::trainer
