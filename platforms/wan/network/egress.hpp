// Limits the rate at which a site's interface sends, in the site's own kernel. It uses Linux's token bucket
// filter (tc-tbf(8)), configured over rtnetlink(7).
#pragma once
#include "platforms/wan/network/isolation.hpp"

namespace fomoe::platforms::wan {

/// Opens an rtnetlink socket for the network namespace that this process is in now. The socket stays bound to
/// that namespace.
Descriptor open_route_control();

/// Limits the interface kInterface of that namespace to `bytes_per_s`, IP headers included, with a queue of
/// `queue_bytes`. Its packets have `mtu` bytes at most. Sockets see that queue: TCP holds back data that
/// would wait in it (tcp_limit_output_bytes), so that acknowledgements do not wait long behind data. Replaces
/// an earlier limit. Throws Refusal if the kernel has no such filter.
void limit_egress(const Descriptor& route_control, double bytes_per_s, double queue_bytes, int mtu);

}  // namespace fomoe::platforms::wan
