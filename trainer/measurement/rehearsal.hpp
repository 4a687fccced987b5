// A transport that nothing leaves and nothing reaches: all that a process does for a transfer, without a
// network.
#pragma once
#include <vector>

#include "trainer/comm/transport.hpp"

namespace fomoe::trainer {

/// What others would send is zeros, there at once.
class RehearsalTransport : public Transport {
 public:
  /// Hosts what `of` hosts.
  explicit RehearsalTransport(const Transport& of);

 protected:
  void post(const std::vector<Message*>& messages, int channel) override;
  void move(const std::vector<Message*>& messages, int channel) override;
};

}  // namespace fomoe::trainer
