#include "trainer/comm/phase.hpp"

#include <numeric>

namespace fomoe::trainer {

void Phase::add(costmodel::NodeId from, costmodel::NodeId to, const std::optional<StoredObject>& object,
                costmodel::TrafficClass traffic, std::int64_t bytes, std::function<at::Tensor()> encode,
                std::function<void(const at::Tensor&)> received) {
  const bool sends = transport_->hosts(from), receives = transport_->hosts(to);
  if (!sends && !receives) return;
  Segment segment{0, bytes, sends ? std::move(encode) : nullptr, receives ? std::move(received) : nullptr};
  if (bytes == 0) {  // a payload with fewer elements than nodes has empty chunks: no message is needed
    if (receives) empty_.push_back(std::move(segment));
    return;
  }
  Bundle& bundle = bundles_[{from, to, object}];
  segment.offset = std::accumulate(bundle.bytes_of.begin(), bundle.bytes_of.end(), std::int64_t{0});
  bundle.bytes_of.at(static_cast<std::size_t>(traffic)) += bytes;
  bundle.segments.push_back(std::move(segment));
}

void Phase::lay_out() {
  for (const auto& [way, bundle] : bundles_) {
    Message& message = messages_.emplace_back();
    std::tie(message.from, message.to, message.object) = way;
    message.bytes_of = bundle.bytes_of;
    message.used_on = device_;
  }
}

void Phase::expect() {
  lay_out();
  transport_->expect(messages_, channel_);
}

void Phase::run() {
  if (messages_.empty()) lay_out();
  auto message = messages_.begin();
  for (const auto& [way, bundle] : bundles_) {
    std::vector<at::Tensor> parts;
    for (const Segment& segment : bundle.segments) {
      if (segment.encode) parts.push_back(segment.encode());
    }
    if (!parts.empty()) message->sent = parts.size() == 1 ? parts.front() : at::cat(parts);
    ++message;
  }
  transport_->exchange(messages_, channel_);
  for (const Segment& segment : empty_) segment.received(at::empty({0}, at::kByte));
  message = messages_.begin();
  for (const auto& [way, bundle] : bundles_) {
    for (const Segment& segment : bundle.segments) {
      if (segment.received) segment.received(message->received.narrow(0, segment.offset, segment.bytes));
    }
    ++message;
  }
  messages_.clear();
}

}  // namespace fomoe::trainer
