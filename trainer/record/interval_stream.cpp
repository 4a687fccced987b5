#include "trainer/record/interval_stream.hpp"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "costmodel/math/spans.hpp"

namespace fomoe::trainer {

using costmodel::Activity;
using costmodel::Interval;
using nlohmann::json;

namespace {

constexpr std::int64_t kIntervalsInBlock = 4096, kMostRoundsInBlock = 128;

double exposed_at(costmodel::NodeId node, const std::vector<Interval>& intervals) {
  std::vector<costmodel::Span> transferring, computing;
  for (const Interval& interval : intervals) {
    if (interval.node != node || interval.activity == Activity::upkeep) continue;
    (interval.activity == Activity::transfer ? transferring : computing)
        .emplace_back(interval.start_s, interval.end_s);
  }
  return costmodel::uncovered(transferring, computing);
}

}  // namespace

std::int64_t rounds_per_block(const costmodel::Plan& plan) {
  const auto operations = std::max<std::int64_t>(1, std::ssize(plan.round(0).ops));
  return std::clamp(kIntervalsInBlock / operations, kKeptRounds, kMostRoundsInBlock);
}

std::string to_text(const std::vector<Interval>& intervals) {
  json out = json::array();
  for (const Interval& i : intervals)
    out.push_back({i.node, i.op, i.round, static_cast<int>(i.activity), i.start_s, i.end_s});
  return out.dump();
}

std::vector<Interval> intervals_from(const std::string& text) {
  std::vector<Interval> out;
  for (const json& i : json::parse(text))
    out.push_back({i[0], i[1], i[2], static_cast<Activity>(i[3].get<int>()), i[4], i[5]});
  return out;
}

IntervalStream::IntervalStream(Executor& executor, Rendezvous* rendezvous, const costmodel::Plan& plan,
                               std::int64_t first_round, bool counts)
    : executor_(executor),
      rendezvous_(rendezvous),
      first_round_(first_round),
      block_rounds_(rounds_per_block(plan)),
      counts_(counts),
      summary_(plan, first_round) {}

std::vector<Interval> IntervalStream::take(std::int64_t before) {
  std::vector<Interval> taken = executor_.take_intervals(before);
  if (!executor_.hosted().empty()) exposed_s_ += exposed_at(executor_.hosted().front(), taken);
  if (!counts_) taken.clear();
  return taken;
}

void IntervalStream::round(std::int64_t done) {
  if ((done - first_round_) % block_rounds_ != 0) return;
  // Transfers of the last rounds may still be under way.
  const std::int64_t complete = done - kKeptRounds;
  const std::vector<Interval> taken = take(complete);
  if (rendezvous_ == nullptr) {
    summary_.add(taken);
    summary_.fold(complete);
    return;
  }
  rendezvous_->post("intervals/" + std::to_string(sent_++), to_text(taken));
  receive(/*wait=*/false);
}

void IntervalStream::receive(bool wait) {
  for (; received_ < sent_; ++received_) {
    const auto texts = rendezvous_->posted("intervals/" + std::to_string(received_), wait);
    if (!texts) return;  // another process is behind; its block stays in the store until the next round
    for (const std::string& text : *texts) {
      if (!text.empty()) summary_.add(intervals_from(text));
    }
    summary_.fold(first_round_ + (received_ + 1) * block_rounds_ - kKeptRounds);
  }
}

std::vector<Interval> IntervalStream::rest() { return take(std::numeric_limits<std::int64_t>::max()); }

IntervalSummary& IntervalStream::received() {
  if (rendezvous_ != nullptr) receive(/*wait=*/true);
  return summary_;
}

double IntervalStream::exposed_s() const {
  if (executor_.hosted().empty()) return 0;
  return exposed_s_ + exposed_at(executor_.hosted().front(), executor_.intervals());
}

}  // namespace fomoe::trainer
