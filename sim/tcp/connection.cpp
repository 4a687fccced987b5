#include "sim/tcp/connection.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace fomoe::sim {

namespace {

// The memory that tcp_sndbuf_expand() (net/ipv4/tcp_input.c) counts for a segment: payload and options, and
// the headers and structures around them, up to the next power of two, and 256. (Kernels with wireless
// drivers reserve more for headers.)
double memory_of_segment(double segment_bytes) {
  constexpr double kOptions_bytes = 12, kAround_bytes = 480, kBuffer_bytes = 256;
  const auto all = static_cast<std::uint64_t>(segment_bytes + kOptions_bytes + kAround_bytes);
  return static_cast<double>(std::bit_ceil(all)) + kBuffer_bytes;
}

}  // namespace

double Connection::memory_per_byte() const { return costmodel::memory_per_byte(burst_bytes()); }

double Connection::timeout_s() const { return smoothed_s_ + variation_s_; }

// tcp_rtt_estimator() in net/ipv4/tcp_input.c: Jacobson's estimator, whose variation (four mean deviations)
// falls by a quarter of what is too much in each round trip, to 0.2 s at least. It begins with two round
// trips, so that time-outs are three round trips long at first.
void Connection::update_round_trip(double sample_s) {
  const double error_s = sample_s - smoothed_s_;
  smoothed_s_ += error_s / 8;  // RFC 6298
  double more_s = std::abs(error_s) - deviation_s_ / 4;
  if (error_s < 0 && more_s > 0) more_s /= 8;
  deviation_s_ += more_s;
  most_deviation_s_ = std::max(most_deviation_s_, deviation_s_);
  variation_s_ = std::max(variation_s_, most_deviation_s_);
  if (acknowledged_ + lost_ <= variation_end_) return;
  variation_s_ -= (variation_s_ - most_deviation_s_) / 4;
  variation_end_ = sent_;
  most_deviation_s_ = costmodel::kLeastTimeout_s;
}

Connection::Connection(std::unique_ptr<CongestionWindow> control, SocketBuffers buffers, double round_trip_s)
    : control_(std::move(control)),
      buffers_(buffers),
      smoothed_s_(round_trip_s),
      least_s_(round_trip_s),
      deviation_s_(2 * round_trip_s),
      variation_s_(std::max(2 * round_trip_s, costmodel::kLeastTimeout_s)),
      most_deviation_s_(variation_s_) {
  expand_buffer();
}

void Connection::put(double now_s, std::int64_t bytes, PartEvents& events) {
  if (static_cast<double>(unsent_) < segment() && in_host_bytes <= 0 &&
      in_flight() < control_->window_bytes())
    sender_limited_until_ = std::max(1.0, acknowledged_ + in_flight());
  parts_.push_back({&events, bytes, bytes});
  write(now_s);
}

// The application writes until the buffer is full, and then waits until a third of it is free.
void Connection::write(double now_s) {
  // What has not been sent is in packets as large as offload takes.
  const double memory = costmodel::memory_per_byte(costmodel::kMostOffload_bytes);
  const auto unsent = static_cast<double>(unsent_);
  double used = (written_ - acknowledged_ - unsent) * memory_per_byte() + unsent * memory;
  if (buffer_full_ && used > costmodel::kBufferInFlight * buffer_) return;
  buffer_full_ = false;
  while (writing_ < parts_.size() && !buffer_full_) {
    Part& part = parts_[writing_];
    const auto room = static_cast<std::int64_t>(std::ceil(std::max(0.0, buffer_ - used) / memory));
    const std::int64_t taken = std::min(part.unwritten, room);
    part.unwritten -= taken;
    unsent_ += taken;
    written_ += static_cast<double>(taken);
    used += static_cast<double>(taken) * memory;
    if (part.unwritten > 0) {
      buffer_full_ = true;
    } else {
      ++writing_;
      part.events->written(now_s);
    }
  }
}

// tcp_sndbuf_expand(): twice the window, three times with BBR. The buffer never shrinks.
void Connection::expand_buffer() {
  if (in_flight() >= control_->window_bytes()) return;
  const double wanted =
      control_->buffered_windows() * control_->window_bytes() / segment() * memory_of_segment(segment());
  buffer_ = std::max(buffer_, std::min(wanted, buffers_.send));
}

void Connection::note_window(bool limited) {
  if (acknowledged_ + lost_ < usage_end_ && !limited && (window_limited_ || in_flight() <= largest_flight_))
    return;
  window_limited_ = limited;
  largest_flight_ = in_flight();
  usage_end_ = sent_;
}

void Connection::end_silence(double now_s) {
  if (in_flight() > 0 || last_sent_s_ < 0 || now_s <= last_sent_s_ || idle_since_s_ == last_sent_s_) return;
  idle_since_s_ = last_sent_s_;
  control_->sends_again(now_s, now_s - last_sent_s_, timeout_s(), sender_limited_until_ > 0);
}

void Connection::announce(double now_s) {
  end_silence(now_s);
  last_sent_s_ = now_s;
}

std::int64_t Connection::ready_bytes(double now_s, double& not_before_s) {
  if (unsent_ == 0) return 0;
  end_silence(now_s);
  const double receiver = std::max(1.0, buffers_.receive / 2);  // net.ipv4.tcp_adv_win_scale = 1
  // A receiver whose window has no room for a whole segment gets shorter ones.
  const double least = std::min({static_cast<double>(unsent_), segment(), receiver});
  const double window = control_->window_bytes() - in_flight();
  if (window < least) {
    note_window(true);
    return 0;
  }
  const double room = std::min(window, receiver - in_flight());
  if (room < least) return 0;
  if (control_->paces() && now_s < next_burst_s_) {
    not_before_s = next_burst_s_;
    return 0;
  }
  const double burst = std::min(static_cast<double>(unsent_), burst_bytes());
  // Waits for the next acknowledgement if the burst could then be larger, and it is due soon: half of the
  // round trip has passed since the oldest burst in flight (tcp_tso_should_defer() in
  // net/ipv4/tcp_output.c).
  if (room < burst && room < control_->window_bytes() / 3 && !recovery_.active() &&
      !in_flight_since_s_.empty() && now_s - in_flight_since_s_.front() >= smoothed_s_ / 2) {
    if (window < burst) note_window(true);
    return 0;
  }
  return static_cast<std::int64_t>(std::min(room, burst));
}

Burst Connection::send(double now_s, std::int64_t bytes) {
  if (in_flight() <= 0) first_sent_s_ = acknowledged_at_s_ = now_s;
  Burst burst;
  burst.bytes = bytes;
  burst.sent_s = now_s;
  burst.first_sent_s = first_sent_s_;
  burst.acknowledged = acknowledged_;
  burst.acknowledged_at_s = acknowledged_at_s_;
  burst.sender_limited = sender_limited_until_ > 0;
  burst.repeats = recovery_.sends(static_cast<double>(bytes));
  unsent_ -= bytes;
  sent_ += static_cast<double>(bytes);
  last_sent_s_ = now_s;
  in_flight_since_s_.push_back(now_s);
  if (control_->paces())
    next_burst_s_ =
        std::max(now_s, next_burst_s_) + static_cast<double>(bytes) / control_->pace_bytes_per_s(smoothed_s_);
  note_window(in_flight() >= control_->window_bytes());
  return burst;
}

void Connection::deliver(double now_s, std::int64_t bytes) {
  while (bytes > 0 && !parts_.empty()) {
    Part& part = parts_.front();
    const std::int64_t taken = std::min(bytes, part.undelivered);
    part.undelivered -= taken;
    bytes -= taken;
    if (part.undelivered > 0) return;
    PartEvents* events = part.events;
    parts_.pop_front();
    --writing_;
    events->delivered(now_s);
  }
}

void Connection::acknowledge(double now_s, const Burst& burst) {
  Ack ack;
  ack.now_s = now_s;
  ack.bytes = static_cast<double>(burst.bytes);
  // Every other segment is acknowledged by itself.
  ack.spread_s = burst.bytes == 0 ? 0 : burst.spread_s * std::max(0.0, 1 - 2 * segment() / ack.bytes);
  ack.round_trip_s = now_s - ack.spread_s - burst.sent_s;
  least_s_ = std::min(least_s_, ack.round_trip_s);
  in_flight_since_s_.pop_front();  // acknowledgements keep the order of the bursts
  acknowledged_ += ack.bytes;
  lost_ += static_cast<double>(burst.lost);
  update_round_trip(ack.round_trip_s + ack.spread_s / 2);
  unsent_ += burst.lost;
  acknowledged_at_s_ = now_s;
  first_sent_s_ = std::max(first_sent_s_, burst.sent_s);
  if (sender_limited_until_ > 0 && acknowledged_ > sender_limited_until_) sender_limited_until_ = 0;
  const double accounted = acknowledged_ + lost_;
  ack.acknowledged = acknowledged_;
  ack.accounted = accounted;
  ack.sent = sent_;
  ack.acknowledged_when_sent = burst.acknowledged;
  ack.interval_s = std::max(burst.sent_s - burst.first_sent_s, now_s - burst.acknowledged_at_s);
  ack.sender_limited = burst.sender_limited;
  ack.lost = static_cast<double>(burst.lost);
  ack.repeats = burst.repeats;
  ack.window_limited = window_limited_;
  ack.largest_flight = largest_flight_;
  ack.smoothed_s = smoothed_s_;
  ack.least_s = least_s_;
  if (recovery_.lost(ack.lost, burst.repeats, accounted, sent_)) control_->lost(ack);
  if (recovery_.ends(accounted)) {
    control_->recovered();
    if (recovery_.next(accounted, sent_)) control_->lost(ack);
  }
  ack.in_recovery = recovery_.active();
  control_->acknowledged(ack);
  if (control_->ignores_rates()) sender_limited_until_ = std::max(1.0, acknowledged_ + in_flight());
  expand_buffer();
  write(now_s);
}

}  // namespace fomoe::sim
