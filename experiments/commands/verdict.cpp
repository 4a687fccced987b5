#include "experiments/commands/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "experiments/commands/execute.hpp"
#include "experiments/commands/human.hpp"

namespace fomoe::commands {
namespace {

constexpr double kSameTime = 1.01;

double total_sent(const Case& one) {
  return one.report.bytes_sent_per_site_per_round * static_cast<double>(one.report.round.count);
}

std::string limit(const Case& one) {
  const double idle = one.report.round.idle_s / one.report.round.duration_s;
  return waiting_text(one.report) + (idle > 0.05 ? fmt::format(" and is idle {}", human_percent(idle)) : "");
}

std::string quoted(const Case& one) {
  return fmt::format("{} with K = {}, O_e = {} ({})", one.name, one.steps_per_round(), one.expert_overlap,
                     human_time(one.report.wall_clock_s));
}

std::string faster(double slow_s, double fast_s) {
  const double ratio = slow_s / fast_s;
  return ratio >= 2 ? fmt::format("It is {:.3g} times as fast as", ratio)
                    : fmt::format("It takes {} less time than", human_percent(1 - 1 / ratio));
}

}  // namespace

std::string verdict(const std::vector<Case>& cases) {
  const auto by_time = [](const Case* a, const Case* b) {
    return a->report.wall_clock_s < b->report.wall_clock_s;
  };
  std::vector<const Case*> order;
  for (const Case& one : cases) order.push_back(&one);
  std::stable_sort(order.begin(), order.end(), by_time);
  std::vector<const Case*> equal;
  for (const Case* one : order) {
    if (one->report.wall_clock_s <= order.front()->report.wall_clock_s * kSameTime) equal.push_back(one);
  }
  const Case& chosen = **std::min_element(equal.begin(), equal.end(), [](const Case* a, const Case* b) {
    return std::make_tuple(a->steps_per_round(), total_sent(*a)) <
           std::make_tuple(b->steps_per_round(), total_sent(*b));
  });

  std::string text;
  if (equal.size() == 1) {
    text = fmt::format("Fastest: {}. It {}.", quoted(chosen), limit(chosen));
  } else {
    std::string others;
    bool most_often = true;
    for (const Case* one : equal) {
      if (one == &chosen) continue;
      others += (others.empty() ? "" : " and ") + quoted(*one);
      most_often = most_often && one->steps_per_round() > chosen.steps_per_round();
    }
    if (equal.size() > 3) others = fmt::format("{} other cases", equal.size() - 1);
    text = fmt::format(
        "Fastest, within 1 % as fast as {}: {}, which of these {}. It {}.", others, quoted(chosen),
        most_often ? "synchronises most often" : "synchronises no less often and sends the fewest bytes",
        limit(chosen));
  }
  // Against the best that communicates more often; where there is none, against the next that is slower.
  const Case* reference = nullptr;
  for (const Case* one : order) {
    if (reference == nullptr && one->steps_per_round() < chosen.steps_per_round()) reference = one;
  }
  for (const Case* one : order) {
    if (reference == nullptr && std::find(equal.begin(), equal.end(), one) == equal.end()) reference = one;
  }
  if (reference != nullptr) {
    text +=
        fmt::format(" {} {}, which {}.", faster(reference->report.wall_clock_s, chosen.report.wall_clock_s),
                    quoted(*reference), limit(*reference));
  }
  // Everybody knows what synchronising every step means, so it is worth a second comparison.
  for (const Case* one : order) {
    if (one == reference || one == &chosen || one->steps_per_round() > 1) continue;
    text +=
        fmt::format(" {} {}.", faster(one->report.wall_clock_s, chosen.report.wall_clock_s), quoted(*one));
    break;
  }
  if (chosen.ring && waits_for_latency(chosen.report)) {
    text += " A ring pays each latency many times: try strategy.collective=direct.";
  }
  return text +
         " Model quality is not in this answer: fewer synchronisations and fewer copies of an expert can "
         "cost "
         "quality.";
}

}  // namespace fomoe::commands
