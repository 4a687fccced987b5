// The terms of the level: the surface, the slope in K, the format on the wire, and overlap.
#include <algorithm>
#include <cmath>

#include "costmodel/published/losses.hpp"

namespace fomoe::costmodel {

namespace {

constexpr double kFewBitsHalf = 0.3;    // of 4 to 15 bits: a claim of several papers, and one pair of rows
constexpr double kStreamingHalf = 0.3;  // of fragments that are a few steps under way: one pair of rows
const std::vector<std::string> kFormatRows = {"forgather-lowprec-bf16-down",
                                              "forgather-lowprec-bf16-down-stochastic-rounding",
                                              "forgather-lowprec-bf16-up-stochastic-rounding"};
const std::vector<std::string> kFewBitsRows = {"osirus-3M-T5000-K100-diloco-int8",
                                               "osirus-3M-T5000-K100-diloco"};
const std::vector<std::string> kStreamingRows = {"eager-t2-1-inner-step", "eager-t2-no-overlap"};
const std::vector<std::string> kEagerRows = {"eager-t2-1-outer-step-eager", "eager-t2-no-overlap"};

void append(std::vector<std::string>& ids, const std::vector<std::string>& more) {
  ids.insert(ids.end(), more.begin(), more.end());
}

}  // namespace

/// Linear between the entries, constant outside of them.
PublishedLosses::Value PublishedLosses::between(const std::vector<Entry>& entries, double x) {
  if (x <= entries.front().x) return {entries.front().points, {entries.front().id}};
  for (std::size_t i = 0; i + 1 < entries.size(); ++i) {
    const Entry &low = entries[i], &high = entries[i + 1];
    if (x >= high.x) continue;
    Value value = {low.points + (high.points - low.points) * (x - low.x) / (high.x - low.x), {low.id}};
    if (x > low.x) value.ids.push_back(high.id);
    return value;
  }
  return {entries.back().points, {entries.back().id}};
}

PublishedLosses::Value PublishedLosses::column(std::int64_t replicas, double log_n) const {
  const std::vector<Entry>& entries = columns_.at(replicas);
  Value value = between(entries, log_n);
  const double largest = entries.back().x;
  if (replicas == kMostReplicas && log_n > largest) {
    // M = 8 was measured up to 2.4e9. What 8 replicas cost more than 4 there is kept beyond; it fell with
    // every size.
    Value four = column(4, log_n);
    four.points += value.points - column(4, largest).points;
    append(four.ids, value.ids);
    return four;
  }
  return value;
}

PublishedLosses::Value PublishedLosses::surface(double parameters, std::int64_t replicas) const {
  const double log_n = std::log(parameters), log_m = std::log2(static_cast<double>(replicas));
  const int low = std::min(static_cast<int>(log_m), 2);
  const double share = log_m - low;
  const Value below = column(std::int64_t{1} << low, log_n), above = column(std::int64_t{2} << low, log_n);
  Value value = {below.points + share * (above.points - below.points), {}};
  if (share < 1) append(value.ids, below.ids);
  if (share > 0) append(value.ids, above.ids);
  return value;
}

PublishedLosses::Terms PublishedLosses::terms(const LossSetting& setting) const {
  Terms terms;
  terms.value = surface(setting.parameters, setting.replicas);
  terms.value.points += slope_ * doublings_of_steps(setting.local_steps);
  const bool few_bits = setting.wire_bits < 16;
  terms.halves[0] = few_bits ? kFewBitsHalf : 0;
  append(terms.value.ids, few_bits ? kFewBitsRows : kFormatRows);
  if (setting.method == "streaming_diloco") {
    terms.halves[1] = kStreamingHalf;
    append(terms.value.ids, kStreamingRows);
  } else if (setting.method == "eager_diloco") {
    const Value late = between(eager_, std::log(setting.parameters));
    terms.value.points += late.points;
    terms.halves[1] = eager_half_;
    append(terms.value.ids, late.ids);
    append(terms.value.ids, kEagerRows);
  }
  return terms;
}

}  // namespace fomoe::costmodel
