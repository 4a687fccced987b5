#include "sim/executor/rounds_of_class.hpp"

#include <algorithm>
#include <string>

#include "costmodel/math/replicas.hpp"
#include "costmodel/timeline/class_mean.hpp"
#include "platforms/support/input_error.hpp"

namespace fomoe::sim {

namespace {

// Identical rounds reach a steady state after a few rounds. They need a few because a site that ends a round
// early starts the next one early.
constexpr std::int64_t kIdenticalRounds = 3;
// The first overlapping rounds fill the pipeline; the last one empties it.
constexpr std::int64_t kOverlappingRounds = 8, kFewestOverlappingRounds = 5;
// Overlapping rounds that differ need more, since the first quarter and the last two do not represent the
// others.
constexpr std::int64_t kRandomOverlappingRounds = 32;

}  // namespace

std::int64_t usual_rounds(const costmodel::RoundClass& round_class, const RunOptions& options) {
  if (!round_class.overlapping) return round_class.identical ? kIdenticalRounds : options.fewest_rounds;
  return (round_class.identical ? kOverlappingRounds : kRandomOverlappingRounds) +
         2 * (round_class.reach - 1);
}

std::vector<std::int64_t> first_rounds(const costmodel::RoundClass& round_class, std::int64_t wanted) {
  if (round_class.overlapping) wanted = std::max(wanted, kFewestOverlappingRounds);
  wanted = std::min({wanted, round_class.count, round_class.known.value_or(round_class.count)});
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < wanted; ++i) indices.push_back(round_class.round_at(i));
  if (round_class.overlapping && !round_class.own_pace)
    indices.back() = round_class.round_at(round_class.count - 1);
  return indices;
}

void check_known(const costmodel::RoundClass& round_class, const RunOptions& options) {
  if (!options.all_rounds && !options.rounds) return;
  const std::int64_t wanted =
      options.all_rounds ? round_class.count : std::min(*options.rounds, round_class.count);
  if (!round_class.known || wanted <= *round_class.known) return;
  throw InputError(
      "--rounds", std::to_string(wanted),
      "at most " + std::to_string(*round_class.known) + ", the number of rounds that the plan describes",
      "--rounds " + std::to_string(*round_class.known));
}

bool agree(const costmodel::Timeline& timeline, double precision) {
  std::vector<double> durations_s = costmodel::round_durations_s(timeline.round_end_s);
  durations_s.erase(durations_s.begin());
  const costmodel::Spread spread = costmodel::spread_of(durations_s);
  return spread.mean_high - spread.mean <= precision * spread.mean;
}

}  // namespace fomoe::sim
