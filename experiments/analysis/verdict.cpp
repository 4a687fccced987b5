#include "experiments/analysis/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "experiments/analysis/loss_contrast.hpp"
#include "experiments/cli/equal_loss.hpp"
#include "experiments/cli/execute.hpp"
#include "experiments/text/human.hpp"

namespace fomoe::commands {
namespace {

constexpr double kSameTime = 1.01;

double total_sent(const Case& one) {
  return one.report.bytes_sent_per_site_per_round * static_cast<double>(one.report.round.count);
}

std::string limit(const Case& one) {
  const double idle = one.report.round.idle_s / one.report.round.duration_s;
  return waiting_text(one.report) +
         (idle > 0.05 ? fmt::format(" and is idle {} of the time", human_percent(idle)) : "");
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

std::string amount(const Case& one) {
  const std::string money = money_text(one.report);
  return human_time(one.report.wall_clock_s) + (money.empty() ? "" : ", " + money);
}

/// Compares `chosen` with another case at equal loss. If the final perplexity of `chosen` is at most that of
/// `reference`, `chosen` reached the final perplexity of `reference` during its run. The wall clock of
/// `chosen` is then an upper bound of the time to that perplexity. Otherwise `chosen` never reached that
/// perplexity.
std::string at_equal_loss(const Case& chosen, const Case& reference) {
  const costmodel::Quality& own = *chosen.report.quality;
  const costmodel::Quality& other = *reference.report.quality;
  if (own.equal_loss_centre() && other.equal_loss_centre())
    return fmt::format(
        " To reach the loss of data-parallel training, it would take {}, and {} would take {}.",
        time_to_equal_loss(chosen.report), quoted(reference), time_to_equal_loss(reference.report));
  if (own.perplexity <= other.perplexity) {
    return fmt::format(
        " At equal loss it is still faster: it reaches the perplexity {} of {} ({}) in at most {}.",
        perplexity_text(reference.report), quoted(reference), amount(reference), amount(chosen));
  }
  return fmt::format(
      " At equal loss it is not known to be faster: it does not reach the perplexity {} of {} within this "
      "token budget, so the time to that loss is unknown.",
      perplexity_text(reference.report), quoted(reference));
}

/// What published runs say of the loss of `chosen`: against data-parallel training, and against `reference`,
/// where the level of both cancels.
std::string by_published_runs(const Case& chosen, const Case* reference) {
  const costmodel::LossEstimate& level = chosen.report.quality->published->level;
  std::string text =
      !level.known() ? fmt::format(" Its loss against data-parallel training is UNKNOWN ({}).",
                                   chosen.report.quality->reason)
      : level.half == 0
          ? " It is data-parallel training."
          : fmt::format(" By published runs, its loss is {} against tuned data-parallel training.",
                        points_text(level));
  if (reference == nullptr) return text;
  const auto contrast = loss_contrast(reference->report, chosen.report);
  if (!contrast) return text;
  text += fmt::format(" Its loss against {}: {}.", quoted(*reference), contrast_text(*contrast));
  if (chosen.report.quality->equal_loss_centre() && reference->report.quality->equal_loss_centre())
    text += at_equal_loss(chosen, *reference);
  return text;
}

/// States what is known about the quality of the trained models, and what is unknown. `reference` may be
/// null.
std::string on_quality(const std::vector<Case>& cases, const Case& chosen, const Case* reference) {
  const bool asked =
      std::any_of(cases.begin(), cases.end(), [](const Case& one) { return one.report.quality.has_value(); });
  if (!asked) {
    return " This answer does not include model quality: fewer synchronisations and fewer copies of an "
           "expert can reduce it.";
  }
  if (chosen.report.quality && chosen.report.quality->published) return by_published_runs(chosen, reference);
  std::string text;
  const auto known = [](const Case& one) { return one.report.quality && one.report.quality->known; };
  const auto factor_known = [](const Case& one) {
    return one.report.quality && one.report.quality->equal_loss_centre().has_value();
  };
  const bool factors = reference != nullptr && factor_known(chosen) && factor_known(*reference);
  if (factors && !known(chosen)) {
    text +=
        at_equal_loss(chosen, *reference) + " The factor on its time is assumed (quality.equal_loss_factor).";
  } else if (known(chosen)) {
    text += fmt::format(" Its perplexity is {} ({}).", perplexity_text(chosen.report),
                        chosen.report.quality->source);
  } else {
    text += fmt::format(
        " Its model quality is UNKNOWN ({}): fewer synchronisations and fewer copies of an expert can reduce "
        "quality.",
        chosen.report.quality ? chosen.report.quality->reason : "the case has no quality model");
  }
  if (known(chosen) && reference != nullptr && known(*reference)) text += at_equal_loss(chosen, *reference);
  const Case* best = nullptr;
  for (const Case& one : cases) {
    if (known(one) && (best == nullptr || one.report.quality->perplexity < best->report.quality->perplexity))
      best = &one;
  }
  if (best != nullptr && best != &chosen && best != reference)
    text += fmt::format(" The lowest known perplexity is {}, reached by {}.", perplexity_text(best->report),
                        quoted(*best));
  const auto unknown = std::count_if(cases.begin(), cases.end(),
                                     [&](const Case& one) { return !known(one) && !factor_known(one); });
  if (unknown > 0 && known(chosen))
    text += fmt::format(" The quality of {} of the {} cases is unknown.", unknown, cases.size());
  return text;
}

/// Names cases whose times and bytes are the same, with the reason if it is known.
std::string same_answers(const std::vector<Case>& cases) {
  const auto same = [](const Case& a, const Case& b) {
    return a.report.wall_clock_s == b.report.wall_clock_s && total_sent(a) == total_sent(b);
  };
  for (const Case& one : cases) {
    std::string others, reasons;
    for (const Case& other : cases) {
      if (&other == &one || !same(one, other)) continue;
      others += (others.empty() ? "" : " and ") + quoted(other);
      for (const std::string& note : other.report.notes) {
        const auto& known = one.report.notes;
        const bool both = std::find(known.begin(), known.end(), note) != known.end();
        if (!both && note.find("ignored") != std::string::npos) reasons += "; " + note;
      }
    }
    if (others.empty()) continue;
    std::string text = fmt::format("{} has the same time and bytes as {}{}", quoted(one), others, reasons);
    // A step whose time includes communication of unknown duration was given by an MFU.
    if (one.report.efficiency && !one.report.efficiency->kernel_efficiency)
      text +=
          "; compute.mfu determines the time of a step, whatever the parallel degrees and the recomputation "
          "(compute.kernel_efficiency makes them count)";
    return text + ". ";
  }
  return "";
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
  if (std::any_of(cases.begin(), cases.end(),
                  [&](const Case& one) { return one.question != cases.front().question; }))
    text =
        "These cases do not train the same model on the same workload: the fastest case is not necessarily "
        "the best. ";
  text += same_answers(cases);
  if (equal.size() == 1) {
    text += fmt::format("Fastest: {}. It {}.", quoted(chosen), limit(chosen));
  } else {
    std::string others;
    bool most_often = true;
    for (const Case* one : equal) {
      if (one == &chosen) continue;
      others += (others.empty() ? "" : " and ") + quoted(*one);
      most_often = most_often && one->steps_per_round() > chosen.steps_per_round();
    }
    if (equal.size() > 3) others = fmt::format("{} other cases", equal.size() - 1);
    text +=
        fmt::format("Fastest: {}. Its time equals that of {} within 1 %, and of these cases it {}. It {}.",
                    quoted(chosen), others,
                    most_often ? "synchronises most often"
                               : "synchronises at least as often as the others and sends the fewest bytes",
                    limit(chosen));
  }
  // Compare with the fastest case that synchronises more often. If there is none, compare with the next
  // slower case.
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
  // Synchronising in every step is a well-known baseline, so a second comparison with it is useful.
  for (const Case* one : order) {
    if (one == reference || one == &chosen || one->steps_per_round() > 1) continue;
    text +=
        fmt::format(" {} {}.", faster(one->report.wall_clock_s, chosen.report.wall_clock_s), quoted(*one));
    break;
  }
  if (chosen.direct_is_faster && chosen.report.bottleneck.waits_for == "latency")
    text += " A ring incurs the latency in each of its steps: try strategy.collective=direct.";
  return text + on_quality(cases, chosen, reference);
}

}  // namespace fomoe::commands
