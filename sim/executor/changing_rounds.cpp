#include "sim/executor/changing_rounds.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "platforms/link_changes.hpp"

namespace fomoe::sim {

namespace {

using costmodel::RoundClass;
using costmodel::RoundSample;

constexpr std::int64_t kFewestTimes = 16, kMostTimes = 2000, kMostRandomTimes = 128;
constexpr std::int64_t kMostPerTime =
    64;                                // rounds that are measured at each start time, if rounds are random
constexpr double kFewestPeriods = 16;  // periods that are executed without a gap, if periods are short
constexpr std::int64_t kTrailing = 2;  // overlapping rounds after the measured ones
constexpr double kMostSteps = 2e5;     // steps of the recurrence; a longer run advances several rounds a step
constexpr double kFarther = 1.5;       // the domain grows by this factor if the run is longer

// The rounds of one class that start at the same time.
struct Point {
  double clock_s = 0;     // when the first measured round starts
  double duration_s = 0;  // mean of the measured rounds
  RoundSample sample;
};

class Sampler {
 public:
  Sampler(const costmodel::Plan& plan, const platforms::Platform& platform, const ComputeSeconds& seconds,
          const Options& options, bool random)
      : plan_(plan),
        platform_(platform),
        seconds_(seconds),
        options_(options),
        random_(random),
        points_(plan.classes.size()),
        executed_(plan.classes.size()) {}

  ChangingRounds sample(std::int64_t most_rounds) {
    first_ = first_round();
    const auto classes = static_cast<std::int64_t>(plan_.classes.size());
    const std::int64_t warm = warm_up() + (plan_.classes[0].overlapping ? kTrailing : 0);
    const double period_s = platform_.changes_period_s, start_s = platform_.changes_start_s;
    if (period_s > 0 && kFewestPeriods * period_s <= first_.duration_s * static_cast<double>(most_rounds))
      return whole_periods(most_rounds);
    const std::int64_t times = std::clamp(most_rounds / (classes * (warm + 1)) / 2, kFewestTimes,
                                          random_ ? kMostRandomTimes : kMostTimes);
    measured_ =
        random_ ? std::clamp(most_rounds / (2 * times * classes) - warm, std::int64_t{1}, kMostPerTime) : 1;
    if (plan_.classes[0].overlapping) measured_ = std::max<std::int64_t>(measured_, 4);

    const double last_change_s = platform_.changes.back().at_s;
    // Rounds that start outside the domain take as long as those of another period, or as the last ones.
    const double whole_s = period_s > 0 ? start_s + period_s : std::max(start_s, last_change_s);
    double end_s =
        std::min(whole_s, start_s + kFarther * static_cast<double>(plan_.rounds) * first_.duration_s);
    while (true) {
      cover(start_s, end_s, times);
      const double finish_s = follow(1, nullptr);
      if (end_s >= whole_s || finish_s <= end_s) break;
      end_s = std::min(whole_s, start_s + kFarther * (finish_s - start_s));
    }
    refine_changes(start_s, end_s, times);
    if (random_ && period_s == 0 && end_s == whole_s) refine_last(most_rounds / (4 * classes));

    ChangingRounds rounds;
    Weights weights;
    for (const auto& of_class : points_) weights.emplace_back(of_class.size(), 0.0);
    const double finish_s = follow(1, &weights);
    rounds.doubt_s = std::abs(follow(2, nullptr) - finish_s);
    rounds.start_times = points_[0].size();
    rounds.samples.push_back(std::move(first_.sample));
    for (std::size_t c = 0; c < points_.size(); ++c) {
      for (std::size_t p = 0; p < points_[c].size(); ++p) {
        if (weights[c][p] == 0) continue;
        points_[c][p].sample.count = weights[c][p];
        rounds.samples.push_back(std::move(points_[c][p].sample));
      }
    }
    for (auto& indices : executed_) {
      std::sort(indices.begin(), indices.end());
      indices.erase(std::unique(indices.begin(), indices.end()), indices.end());
    }
    rounds.executed = std::move(executed_);
    return rounds;
  }

 private:
  using Weights = std::vector<std::vector<double>>;  // [class][point]: rounds that the point represents

  /// Executes the first rounds of the run in their order. Those that fill whole periods represent the others.
  ChangingRounds whole_periods(std::int64_t most_rounds) {
    const std::int64_t executed = std::min(most_rounds, plan_.rounds);
    std::vector<std::int64_t> rounds(static_cast<std::size_t>(executed));
    std::iota(rounds.begin(), rounds.end(), 0);
    RoundSample others;
    others.timeline = simulate(plan_, rounds, platform_, seconds_, options_);
    others.overlapping = plan_.classes[0].overlapping;
    others.count = static_cast<double>(plan_.rounds - 1);
    const std::vector<double>& ends = others.timeline.round_end_s;
    const double period_s = platform_.changes_period_s;
    const double usable_s =
        ends[ends.size() - 1 - static_cast<std::size_t>(others.overlapping ? kTrailing : 0)] - ends[0];
    const double filled_s = std::floor(usable_s / period_s) * period_s;
    const auto past = std::upper_bound(ends.begin(), ends.end(), ends[0] + filled_s + 1e-9 * filled_s);
    others.first = 1;
    others.last = std::max<std::size_t>(2, static_cast<std::size_t>(past - ends.begin()));
    const double periods = std::max(1.0, filled_s / period_s);
    others.batch = static_cast<std::size_t>(static_cast<double>(others.last - others.first) / periods);
    others.batch = std::max<std::size_t>(1, others.batch);
    ChangingRounds result;
    result.executed.assign(plan_.classes.size(), {});
    result.executed[0] = rounds;
    result.gapless = true;
    result.samples.push_back(std::move(first_.sample));
    result.samples.push_back(std::move(others));
    return result;
  }

  /// Rounds that are executed before the measured ones, so that these start with the network in use.
  [[nodiscard]] std::int64_t warm_up() const {
    const RoundClass& all = plan_.classes[0];
    return all.overlapping ? all.reach + 2 : 1;
  }

  /// The first round of the run, which is the first of the first class.
  Point first_round() {
    Point first;
    first.clock_s = platform_.changes_start_s;
    first.sample.timeline = simulate(plan_, {0}, platform_, seconds_, options_);
    first.sample.last = 1;
    first.sample.count = 1;
    first.duration_s = first.sample.timeline.round_end_s[0];
    executed_[0].push_back(0);
    return first;
  }

  /// Executes rounds of all classes that start at these times.
  void measure(const std::vector<double>& clocks_s) {
    std::vector<Sequence> sequences;
    std::vector<std::pair<std::size_t, RoundSample>> samples;  // class, measured positions
    for (const double clock_s : clocks_s) {
      // Nothing can be executed while a link is down, so such a round starts on a new network.
      const bool dead = platforms::has_dead_link(platforms::state_at(platform_, clock_s));
      for (std::size_t c = 0; c < plan_.classes.size(); ++c) {
        const RoundClass& kind = plan_.classes[c];
        const std::int64_t before = dead ? 0 : warm_up();
        const std::int64_t length = before + measured_ + (kind.overlapping ? kTrailing : 0);
        Sequence sequence;
        sequence.changes_clock_s = clock_s;
        sequence.held_rounds = static_cast<std::size_t>(before);
        sequence.stream = ++streams_;
        // Multiples of the golden ratio spread the executed rounds over the run.
        constexpr double kGolden = 0.6180339887498949;
        const double share = std::fmod(static_cast<double>(streams_) * kGolden, 1.0);
        const std::int64_t known = kind.known.value_or(kind.count);
        const auto from =
            static_cast<std::int64_t>(share * static_cast<double>(std::max<std::int64_t>(1, known - length)));
        for (std::int64_t i = 0; i < length; ++i)
          sequence.rounds.push_back(kind.round_at(std::min(from + i, known - 1)));
        executed_[c].insert(executed_[c].end(), sequence.rounds.begin(), sequence.rounds.end());
        sequences.push_back(std::move(sequence));
        RoundSample sample;
        sample.first = static_cast<std::size_t>(before);
        sample.last = static_cast<std::size_t>(before + measured_);
        sample.overlapping = kind.overlapping;
        samples.emplace_back(c, std::move(sample));
      }
    }
    std::vector<costmodel::Timeline> timelines =
        simulate_each(plan_, sequences, platform_, seconds_, options_);
    for (std::size_t i = 0; i < timelines.size(); ++i) {
      auto& [c, sample] = samples[i];
      const std::vector<double>& ends = timelines[i].round_end_s;
      const double span_s = ends[sample.last - 1] - (sample.first == 0 ? 0 : ends[sample.first - 1]);
      Point point;
      point.clock_s = sequences[i].changes_clock_s;
      point.duration_s = span_s / static_cast<double>(measured_);
      sample.timeline = std::move(timelines[i]);
      point.sample = std::move(sample);
      points_[c].push_back(std::move(point));
    }
    for (auto& of_class : points_) {
      std::stable_sort(of_class.begin(), of_class.end(),
                       [](const Point& a, const Point& b) { return a.clock_s < b.clock_s; });
    }
  }

  /// Places `times` start times evenly in [start_s, end_s], both ends included.
  void cover(double start_s, double end_s, std::int64_t times) {
    for (auto& of_class : points_) of_class.clear();
    std::vector<double> clocks_s;
    const std::int64_t intervals = end_s > start_s ? times - 1 : 0;
    for (std::int64_t i = 0; i <= intervals; ++i)
      clocks_s.push_back(start_s + (end_s - start_s) * static_cast<double>(i) /
                                       static_cast<double>(std::max<std::int64_t>(1, intervals)));
    measure(clocks_s);
  }

  /// Adds start times at each change and one round before it, where the duration has kinks. Without them, a
  /// short change between two start times would be missed. If the changes are many, the even times are a
  /// sample of them.
  void refine_changes(double start_s, double end_s, std::int64_t times) {
    std::vector<double> clocks_s;
    for (const double change_s : change_times(start_s, end_s)) {
      const double round_s = mean_duration_s(change_s);
      for (const double clock_s : {change_s - round_s, change_s - round_s / 2, change_s})
        if (clock_s > start_s && clock_s < end_s) clocks_s.push_back(clock_s);
    }
    std::sort(clocks_s.begin(), clocks_s.end());
    clocks_s.erase(std::unique(clocks_s.begin(), clocks_s.end()), clocks_s.end());
    if (!clocks_s.empty() && static_cast<std::int64_t>(clocks_s.size()) <= times) measure(clocks_s);
  }

  /// Measures more rounds after the last change of the trace, because these represent the rest of the run.
  void refine_last(std::int64_t rounds) {
    const std::int64_t usual = measured_;
    if (rounds <= usual) return;
    const double clock_s = points_[0].back().clock_s;
    for (auto& of_class : points_) of_class.pop_back();
    measured_ = rounds;
    measure({clock_s});
    measured_ = usual;
  }

  /// Times in (start_s, end_s) at which links change.
  [[nodiscard]] std::vector<double> change_times(double start_s, double end_s) const {
    std::vector<double> times_s;
    const double period_s = platform_.changes_period_s;
    double period_start_s = period_s > 0 ? std::floor(start_s / period_s) * period_s : 0;
    do {
      for (const platforms::LinkChange& change : platform_.changes) {
        const double at_s = period_start_s + change.at_s;
        if (at_s > start_s && at_s < end_s && (times_s.empty() || times_s.back() < at_s))
          times_s.push_back(at_s);
      }
      period_start_s += period_s;
    } while (period_s > 0 && period_start_s < end_s);
    return times_s;
  }

  /// The points of a class on both sides of a start time, of which every `stride`-th is used, and the share
  /// of the second one.
  struct Between {
    std::size_t before = 0, after = 0;
    double share = 0;
  };
  [[nodiscard]] Between between(std::size_t c, double clock_s, std::size_t stride) const {
    const std::vector<Point>& points = points_[c];
    const double period_s = platform_.changes_period_s, start_s = platform_.changes_start_s;
    if (period_s > 0) clock_s = start_s + std::fmod(clock_s - start_s, period_s);
    const auto found =
        std::upper_bound(points.begin(), points.end(), clock_s,
                         [](double time_s, const Point& point) { return time_s < point.clock_s; });
    const auto above = static_cast<std::size_t>(found - points.begin());
    Between result;
    result.before = (above == 0 ? 0 : above - 1) / stride * stride;
    result.after = std::min(result.before + stride, points.size() - 1);
    const double width_s = points[result.after].clock_s - points[result.before].clock_s;
    if (width_s > 0) result.share = std::clamp((clock_s - points[result.before].clock_s) / width_s, 0.0, 1.0);
    return result;
  }
  [[nodiscard]] double duration_s(std::size_t c, const Between& at) const {
    return (1 - at.share) * points_[c][at.before].duration_s + at.share * points_[c][at.after].duration_s;
  }
  [[nodiscard]] double mean_duration_s(double clock_s) const {
    double mean_s = 0;
    for (std::size_t c = 0; c < points_.size(); ++c)
      mean_s += share_of(c) * duration_s(c, between(c, clock_s, 1));
    return mean_s;
  }
  /// Share of the class among the rounds after the first one of the run.
  [[nodiscard]] double share_of(std::size_t c) const {
    const std::int64_t first = plan_.classes[c].round_at(0) == 0 ? 1 : 0;
    return static_cast<double>(plan_.classes[c].count - first) /
           static_cast<double>(std::max<std::int64_t>(1, plan_.rounds - 1));
  }

  /// Follows the recurrence to the end of the run, and returns its time on the clock of the changes. Rounds
  /// of several classes alternate faster than links change, so each step has all classes in their proportion.
  double follow(std::size_t stride, Weights* weights) const {
    double clock_s = first_.clock_s + first_.duration_s;
    const double missing = static_cast<double>(plan_.rounds) - 1;
    const double step = std::max(1.0, missing / kMostSteps);
    for (double done = 0; done < missing; done += step) {
      const double rounds = std::min(step, missing - done);
      double mean_s = 0;
      for (std::size_t c = 0; c < points_.size(); ++c) {
        const Between at = between(c, clock_s, stride);
        mean_s += share_of(c) * duration_s(c, at);
        if (weights == nullptr) continue;
        (*weights)[c][at.before] += rounds * share_of(c) * (1 - at.share);
        (*weights)[c][at.after] += rounds * share_of(c) * at.share;
      }
      clock_s += rounds * mean_s;
    }
    return clock_s;
  }

  const costmodel::Plan& plan_;
  const platforms::Platform& platform_;
  const ComputeSeconds& seconds_;
  const Options& options_;
  const bool random_;
  std::int64_t measured_ = 1;  // rounds that are measured at each start time
  std::uint64_t streams_ = 0;
  Point first_;
  std::vector<std::vector<Point>> points_;  // [class], in the order of their times
  std::vector<std::vector<std::int64_t>> executed_;
};

}  // namespace

ChangingRounds sample_changing_rounds(const costmodel::Plan& plan, const platforms::Platform& platform,
                                      const ComputeSeconds& seconds, const Options& options,
                                      std::int64_t most_rounds, bool random) {
  return Sampler(plan, platform, seconds, options, random).sample(most_rounds);
}

}  // namespace fomoe::sim
