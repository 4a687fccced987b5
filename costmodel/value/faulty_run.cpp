#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "costmodel/value/goodput.hpp"

namespace fomoe::costmodel {

namespace {

constexpr double kNoEnd = std::numeric_limits<double>::infinity();
// Limits beyond which a run counts as never ending: consecutive events without progress, and events in total.
constexpr int kMaxEventsWithoutProgress = 100'000, kMaxEvents = 500'000;

/// Which of the sites that are there fails first, if those with `rates` do: the one whose own gap is
/// shortest.
std::size_t first_of(const std::vector<double>& rates, const Gap& gap) {
  std::size_t first = 0;
  double least = kNoEnd;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    const double own = gap(rates[i]);
    if (own < least) {
      least = own;
      first = i;
    }
  }
  return first;
}

/// Rates of one kind of failure, of all sites.
std::vector<double> rates_of(const FaultyRun& run, double FaultySite::*rate) {
  std::vector<double> rates;
  for (const FaultySite& site : run.each) rates.push_back(site.*rate);
  return rates;
}

/// A site or a link that has failed, and when it is back.
struct Away {
  bool link = false;
  std::size_t site = 0;  // only if sites differ
  double until_s = 0;
};

/// The sites and links of a run under policy wait. None of them fails again before it is back.
class Parts {
 public:
  Parts(const FaultyRun& run, const Gap& gap)
      : run_(run),
        gap_(gap),
        site_rates_(rates_of(run, &FaultySite::failures_per_s)),
        link_rates_(rates_of(run, &FaultySite::link_failures_per_s)) {}

  [[nodiscard]] double failures_per_s(bool link) const {
    double sum = link ? all_link_failures_per_s(run_) : all_site_failures_per_s(run_);
    for (const Away& one : away_) {
      if (one.link != link) continue;
      if (run_.each.empty())
        sum -= link ? run_.link_failures_per_s : run_.site_failures_per_s;
      else
        sum -= (link ? link_rates_ : site_rates_)[one.site];
    }
    return away_.empty() ? sum : std::max(0.0, sum);
  }
  /// One of the links, or of the sites, fails at `t`.
  void fail(bool link, double t) {
    std::size_t site = 0;
    if (!run_.each.empty()) {
      std::vector<double> rates = link ? link_rates_ : site_rates_;
      for (const Away& one : away_)
        if (one.link == link) rates[one.site] = 0;
      site = first_of(rates, gap_);
    }
    const double outage_s = run_.each.empty() ? run_.outage_s : run_.each[site].outage_s;
    away_.push_back({link, site, t + (link ? run_.link_outage_s : outage_s + run_.transfer_s)});
  }
  [[nodiscard]] bool all_back() const { return away_.empty(); }
  [[nodiscard]] double next_return_s() const {
    double next = kNoEnd;
    for (const Away& one : away_) next = std::min(next, one.until_s);
    return next;
  }
  void return_by(double t) {
    std::erase_if(away_, [t](const Away& one) { return one.until_s <= t; });
  }

 private:
  const FaultyRun& run_;
  const Gap& gap_;
  std::vector<double> site_rates_, link_rates_;  // only if sites differ
  std::vector<Away> away_;
};

// Number of checkpoints in `work_s` of work: one after every τ of work, none at the end.
double checkpoints_in(double work_s, double interval_s) {
  return std::max(0.0, std::ceil(work_s / interval_s * (1 - 1e-12)) - 1);
}

double finish_waiting_s(const FaultyRun& run, const Gap& gap, double& repeated_s) {
  const double cycle_s = run.interval_s + run.checkpoint_s;
  Parts parts(run, gap);
  double t = 0, left_s = run.work_s, into_s = 0;  // into_s: time since the last checkpoint
  int events_without_progress = 0;
  for (int event = 0; event < kMaxEvents && events_without_progress < kMaxEventsWithoutProgress;
       ++event, ++events_without_progress) {
    const double to_site = gap(parts.failures_per_s(false)), to_link = gap(parts.failures_per_s(true));
    const double x = std::min(to_site, to_link);  // exponential gaps have no memory
    if (parts.all_back()) {
      const double count = checkpoints_in(left_s, run.interval_s);
      const double needed_s = left_s + count * run.checkpoint_s - into_s;
      if (x >= needed_s) return t + needed_s;
      const double saved = std::min(std::floor((into_s + x) / cycle_s), count);
      left_s -= saved * run.interval_s;
      into_s += x - saved * cycle_s;
      if (saved > 0) events_without_progress = 0;
    } else if (const double back_s = parts.next_return_s(); t + x >= back_s) {
      if (back_s == kNoEnd) return kNoEnd;
      t = back_s;
      parts.return_by(t);
      continue;
    }
    t += x;
    const bool link = to_link < to_site;
    if (!link) {
      repeated_s += std::min(into_s, run.interval_s);  // the rest of it wrote a checkpoint
      into_s = 0;
    }
    parts.fail(link, t);
  }
  return kNoEnd;
}

/// An absent site, and when it returns.
struct Absent {
  std::size_t site = 0;  // only if sites differ
  double until_s = 0;
  bool link = false;  // only its link has failed, so that it keeps the state
};

/// A failure of one of the sites that are there.
struct Failed {
  std::size_t site = 0;
  double absence_s = 0;
  bool link = false;
};

// The sites that are there, and their failures.
class Present {
 public:
  explicit Present(const FaultyRun& run)
      : run_(run), there_(run.each.size(), true), rate_(run.site_failures_per_s + run.link_failures_per_s) {}

  void set(std::size_t site, bool there) {
    if (!run_.each.empty()) there_[site] = there;
  }
  [[nodiscard]] double failures_per_s(int up) const {
    if (run_.each.empty()) return up * rate_;
    double sum = 0;
    for (std::size_t i = 0; i < there_.size(); ++i)
      if (there_[i]) sum += run_.each[i].failures_per_s + run_.each[i].link_failures_per_s;
    return sum;
  }
  /// Share of the work that the sites do which are there.
  [[nodiscard]] double share(int up) const {
    if (run_.each.empty()) return static_cast<double>(up) / run_.sites;
    double sum = 0;
    for (std::size_t i = 0; i < there_.size(); ++i)
      if (there_[i]) sum += run_.each[i].share;
    return sum;
  }
  [[nodiscard]] double share_of(std::size_t site) const {
    return run_.each.empty() ? 1.0 / run_.sites : run_.each[site].share;
  }
  [[nodiscard]] Failed next(const Gap& gap) const {
    if (run_.each.empty()) {
      const bool link =
          run_.site_failures_per_s <= 0 || gap(run_.link_failures_per_s) < gap(run_.site_failures_per_s);
      return {0, (link ? run_.link_outage_s : run_.outage_s) + run_.transfer_s, link};
    }
    std::vector<double> rates;  // of each site, and of each link
    for (std::size_t i = 0; i < there_.size(); ++i)
      rates.insert(rates.end(), {there_[i] ? run_.each[i].failures_per_s : 0,
                                 there_[i] ? run_.each[i].link_failures_per_s : 0});
    const std::size_t first = first_of(rates, gap);
    const bool link = first % 2 == 1;
    return {first / 2, (link ? run_.link_outage_s : run_.each[first / 2].outage_s) + run_.transfer_s, link};
  }

 private:
  const FaultyRun& run_;
  std::vector<bool> there_;  // only if sites differ
  double rate_;
};

// Simulates round by round; rounds without events are advanced together.
double finish_dropping_s(const FaultyRun& run, const Gap& gap, double& repeated_s) {
  const double checkpoint_s_per_round =
      run.checkpoint_s * run.round_s / run.interval_s;  // checkpoint time in every round
  const double round_s = run.round_s + checkpoint_s_per_round;
  Present present(run);
  double t = 0, left_s = run.work_s, saved_left_s = run.work_s;
  std::vector<Absent> absent;
  const auto next_return_s = [&] {
    double next = kNoEnd;
    for (const Absent& one : absent) next = std::min(next, one.until_s);
    return next;
  };
  const auto save = [&] {
    const double done_s = run.work_s - left_s;
    saved_left_s = run.work_s - std::floor(done_s / run.interval_s) * run.interval_s;
  };
  double to_failure = -1;  // until a working site fails; −1: not drawn yet
  double least_left_s = left_s;
  int events_without_progress = 0;
  for (int event = 0; event < kMaxEvents && events_without_progress < kMaxEventsWithoutProgress;
       ++event, ++events_without_progress) {
    if (left_s < least_left_s) events_without_progress = 0;
    least_left_s = std::min(least_left_s, left_s);
    std::erase_if(absent, [&](const Absent& one) {
      const bool back = one.until_s <= t * (1 + 1e-12);
      if (back) present.set(one.site, true);
      return back;
    });
    const int up = run.sites - static_cast<int>(absent.size());
    if (up == 0) {
      double back = kNoEnd;  // of a site with the state
      for (const Absent& one : absent)
        if (one.link) back = std::min(back, one.until_s);
      if (std::none_of(absent.begin(), absent.end(), [](const Absent& one) { return one.link; })) {
        back = next_return_s();
        repeated_s += saved_left_s - left_s;
        left_s = saved_left_s;
      }
      if (back == kNoEnd) return kNoEnd;
      t = back;
      to_failure = -1;
      continue;
    }
    if (to_failure < 0) to_failure = gap(present.failures_per_s(up));
    // Whole rounds until the next failure or the next return, or until the work is done.
    const double share = present.share(up);
    const double rounds_left = left_s / (run.round_s * share);
    const double back = next_return_s();
    const double quiet = std::min(std::floor(to_failure / round_s), std::ceil((back - t) / round_s));
    if (rounds_left <= to_failure / round_s && rounds_left <= quiet + (quiet * round_s < back - t ? 1 : 0)) {
      // The last checkpoint is not written.
      return t + rounds_left * run.round_s +
             checkpoints_in(rounds_left * run.round_s, run.interval_s) * run.checkpoint_s;
    }
    if (quiet >= 1) {
      left_s -= quiet * run.round_s * share;
      t += quiet * round_s;
      to_failure -= quiet * round_s;
      save();
      if (back <= t) to_failure = -1;  // more sites can fail now; exponential gaps have no memory
      continue;
    }
    // Sites fail within this round, and their parts of it are lost. The others wait for them at its end,
    // where more may fail.
    double end_s = round_s, lost = 0, x = 0, next = to_failure;
    int there = up;
    std::vector<Absent> waited_for;  // within the time-out
    while (there > 0) {
      const auto soonest =
          std::min_element(waited_for.begin(), waited_for.end(),
                           [](const Absent& a, const Absent& b) { return a.until_s < b.until_s; });
      if (soonest != waited_for.end() && soonest->until_s <= x + next) {
        x = soonest->until_s;
        present.set(soonest->site, true);
        waited_for.erase(soonest);
        next = gap(present.failures_per_s(++there));
        continue;
      }
      x += next;
      if (x >= end_s) break;
      if (++event >= kMaxEvents) return kNoEnd;
      const auto [site, absence_s, link] = present.next(gap);
      if (link && run.timeout_s >= run.link_outage_s) {  // it has lost nothing
        end_s = std::max(end_s, x + run.link_outage_s);
        next = gap(present.failures_per_s(there));
        continue;
      }
      if (there == 1 && !link) {  // nobody else has the state
        repeated_s += saved_left_s - left_s + std::min(x, round_s) * share;
        left_s = saved_left_s;
        t += x + absence_s;
        there = 0;
        break;
      }
      if (up > 1) repeated_s += std::min(x, round_s) * present.share_of(site);
      present.set(site, false);
      --there;
      if (run.timeout_s >= absence_s) {  // the site computes its part of the round again
        end_s = std::max(end_s, x + absence_s + round_s);
        waited_for.push_back({site, x + absence_s});
      } else {
        absent.push_back({site, t + x + absence_s, link});
        if (x < round_s) lost += present.share_of(site);
        end_s = std::max(end_s, round_s + run.timeout_s);
      }
      next = gap(present.failures_per_s(there));
    }
    for (const Absent& one : waited_for) present.set(one.site, true);
    if (there > 0) {
      t += end_s;
      left_s -= run.round_s * (share - lost);
      save();
    }
    to_failure = -1;
  }
  return kNoEnd;
}

// Each site stops and returns for itself, and the others train on.
double finish_at_own_pace_s(const FaultyRun& run, const Gap& gap, double& repeated_s) {
  Present present(run);
  std::vector<Absent> absent;
  double t = 0, left_s = run.work_s;
  for (int event = 0; event < kMaxEvents; ++event) {
    const int up = run.sites - static_cast<int>(absent.size());
    const double rate = present.share(up);
    const auto next = std::min_element(
        absent.begin(), absent.end(), [](const Absent& a, const Absent& b) { return a.until_s < b.until_s; });
    const double back_s = next == absent.end() ? kNoEnd : next->until_s;
    const double failed_s = t + gap(present.failures_per_s(up));  // exponential gaps have no memory
    const double done_s = rate > 0 ? t + left_s / rate : kNoEnd, event_s = std::min(back_s, failed_s);
    if (done_s <= event_s) return done_s;
    left_s -= (event_s - t) * rate;
    t = event_s;
    if (back_s <= failed_s) {
      present.set(next->site, true);
      absent.erase(next);
      continue;
    }
    const Failed failed = present.next(gap);
    if (!failed.link) {
      const double lost_s = run.lost_s * present.share_of(failed.site);
      left_s += lost_s;
      repeated_s += lost_s;
    }
    absent.push_back({failed.site, t + failed.absence_s});
    present.set(failed.site, false);
  }
  return kNoEnd;
}

}  // namespace

double all_site_failures_per_s(const FaultyRun& run) {
  if (run.each.empty()) return run.sites * run.site_failures_per_s;
  const std::vector<double> rates = rates_of(run, &FaultySite::failures_per_s);
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

double all_link_failures_per_s(const FaultyRun& run) {
  if (run.each.empty()) return run.sites * run.link_failures_per_s;
  const std::vector<double> rates = rates_of(run, &FaultySite::link_failures_per_s);
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

double finish_s(const FaultyRun& run, const Gap& gap, double& repeated_s) {
  if (run.own_pace) return finish_at_own_pace_s(run, gap, repeated_s);
  return run.policy == FailurePolicy::wait ? finish_waiting_s(run, gap, repeated_s)
                                           : finish_dropping_s(run, gap, repeated_s);
}

double young_interval_s(double checkpoint_s, double mtbf_s) {
  return mtbf_s == kNoEnd ? kNoEnd : std::sqrt(2 * checkpoint_s * mtbf_s);
}

double daly_interval_s(double checkpoint_s, double mtbf_s) {
  if (mtbf_s == kNoEnd) return kNoEnd;
  if (checkpoint_s >= 2 * mtbf_s) return mtbf_s;
  const double ratio = checkpoint_s / (2 * mtbf_s);
  return std::sqrt(2 * checkpoint_s * mtbf_s) * (1 + std::sqrt(ratio) / 3 + ratio / 9) - checkpoint_s;
}

double recommended_timeout_s(const FaultyRun& run, double healthy_wait_s) {
  // Of the site that fails.
  double absence_s = run.outage_s + run.transfer_s, share = 1.0 / run.sites;
  if (const double rate = all_site_failures_per_s(run); !run.each.empty() && rate > 0) {
    absence_s = share = 0;
    for (const FaultySite& site : run.each) {
      absence_s += site.failures_per_s / rate * (site.outage_s + run.transfer_s);
      share += site.failures_per_s / rate * site.share;
    }
  }
  const double dropping_s = healthy_wait_s + std::ceil(absence_s / run.round_s) * run.round_s * share;
  const double waiting_s = absence_s + run.round_s / 2;
  return run.sites > 1 && dropping_s < waiting_s ? healthy_wait_s : absence_s;
}

}  // namespace fomoe::costmodel
