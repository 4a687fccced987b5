#include "trainer/phase.hpp"

namespace fomoe::trainer {

void Phase::add(costmodel::NodeId from, costmodel::NodeId to, costmodel::TrafficClass traffic,
                std::int64_t bytes, const std::function<at::Tensor()>& encode,
                std::function<void(const at::Tensor&)> received) {
  const bool sends = transport_->hosts(from), receives = transport_->hosts(to);
  if (!sends && !receives) return;
  if (bytes == 0) {  // a chunk of a payload with fewer elements than nodes: nothing to wait for
    if (receives) received(at::empty({0}, at::kByte));
    return;
  }
  Bundle& bundle = bundles_[{from, to}];
  bundle.message.from = from;
  bundle.message.to = to;
  if (receives) bundle.segments.push_back({bundle.message.bytes(), bytes, std::move(received)});
  bundle.message.bytes_of.at(static_cast<std::size_t>(traffic)) += bytes;
  if (sends) bundle.parts.push_back(encode());
}

void Phase::run() {
  std::vector<Message> messages;
  std::vector<std::vector<Segment>> segments;
  for (auto& [pair, bundle] : bundles_) {
    if (bundle.parts.size() == 1) bundle.message.sent = bundle.parts.front();
    if (bundle.parts.size() > 1) bundle.message.sent = at::cat(bundle.parts);
    messages.push_back(std::move(bundle.message));
    segments.push_back(std::move(bundle.segments));
  }
  bundles_.clear();
  transport_->exchange(messages, channel_);
  for (std::size_t m = 0; m < messages.size(); ++m) {
    for (const Segment& segment : segments[m])
      segment.received(messages[m].received.narrow(0, segment.offset, segment.bytes));
  }
}

}  // namespace fomoe::trainer
