// Limits what an interface sends, in its own kernel: Linux's token bucket filter (tc-tbf(8)), set up over
// rtnetlink(7).
#pragma once
#include "platforms/wan/network/isolation.hpp"

namespace fomoe::platforms::wan {

/// Of the network namespace that this process is in now; it stays of that one.
Descriptor open_route_control();

/// The interface kInterface of that namespace, whose packets have `mtu` bytes at most, sends no more than
/// `bytes_per_s`, IP headers included, and keeps `queue_bytes` besides. Sockets see that queue: TCP holds
/// back what would wait in it (tcp_limit_output_bytes), so that acknowledgements are not long behind data.
/// Replaces an earlier limit.
void limit_egress(const Descriptor& route_control, double bytes_per_s, double queue_bytes, int mtu);

}  // namespace fomoe::platforms::wan
