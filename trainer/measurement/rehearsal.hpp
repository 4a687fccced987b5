// A transport without a network, to time everything else that a process does for a transfer.
#pragma once
#include <vector>

#include "trainer/comm/transport.hpp"

namespace fomoe::trainer {

/// Every receive completes at once and yields zeros.
class RehearsalTransport : public Transport {
 public:
  /// Hosts the same nodes as `of`.
  explicit RehearsalTransport(const Transport& of);

 protected:
  void post(const std::vector<Message*>& messages, int channel) override;
  void move(const std::vector<Message*>& messages, int channel) override;
};

}  // namespace fomoe::trainer
