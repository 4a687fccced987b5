#include "trainer/measurement/rehearsal.hpp"

#include "trainer/comm/staging.hpp"

namespace fomoe::trainer {

using costmodel::NodeId;

namespace {

std::vector<NodeId> hosted_by(const Transport& transport) {
  std::vector<NodeId> nodes;
  for (NodeId node = 0; node < static_cast<NodeId>(transport.nodes().size()); ++node) {
    if (transport.hosts(node)) nodes.push_back(node);
  }
  return nodes;
}

}  // namespace

RehearsalTransport::RehearsalTransport(const Transport& of) : Transport(of.nodes(), hosted_by(of)) {}

// Buffers are allocated when a real transport would post the receive, and filled when the bytes would arrive.
void RehearsalTransport::post(const std::vector<Message*>& messages, int /*channel*/) {
  for (Message* message : messages) message->received = host_buffer(message->bytes(), message->used_on);
}

void RehearsalTransport::move(const std::vector<Message*>& messages, int channel) {
  for (Message* message : messages) {
    if (!hosts(message->to)) continue;
    if (!message->received.defined()) post({message}, channel);
    message->received.zero_();
  }
}

}  // namespace fomoe::trainer
