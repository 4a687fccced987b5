#include "costmodel/inputs/step_profile.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "costmodel/math/quantiles.hpp"
#include "platforms/support/input_error.hpp"

namespace fomoe::costmodel {

namespace {

double lerp_clamped(double a, double b, double share) { return std::max(0.0, a + (b - a) * share); }

std::string measured_batches(const StepProfile& profile, bool skip_token) {
  std::set<std::int64_t> batches;
  for (const ProfilePoint& point : profile.points) {
    if (point.skip_token == skip_token) batches.insert(point.micro_batch_sequences);
  }
  std::string text;
  for (const std::int64_t batch : batches) text += (text.empty() ? "" : ", ") + std::to_string(batch);
  return text.empty() ? "none" : text;
}

constexpr double kMostWaited = 0.05;
// Steps that the host launches kernel by kernel have 0.12 on a GPU that nobody else uses; processes that take
// turns with a step have a third and more.
constexpr double kMostDeviceWaited = 0.25;

std::string percent(double share) { return std::to_string(std::lround(100 * share)) + " %"; }

/// "threads waited for a core 34 % of the time": what is at least half a percent of it; otherwise empty.
std::string waits_text(double waited_share, double device_waited_share) {
  constexpr double kLeast = 0.005;
  std::string text;
  if (waited_share >= kLeast) text = "threads waited for a core " + percent(waited_share) + " of the time";
  if (device_waited_share >= kLeast)
    text +=
        (text.empty() ? "steps waited for the device at least " : ", and steps for the device at least ") +
        percent(device_waited_share) + (text.empty() ? " of the time" : " of it") +
        " (beyond the fastest tenth of the steps)";
  return text;
}

}  // namespace

bool disturbed(const ProfilePoint& point) {
  return point.waited_share.value_or(0) > kMostWaited ||
         point.device_waited_share.value_or(0) > kMostDeviceWaited;
}

double beyond_fastest(const std::vector<StepSample>& steps) {
  if (steps.empty()) return 0;
  std::vector<double> steps_s;
  double sum_s = 0;
  for (const StepSample& step : steps) {
    steps_s.push_back(step.forward_s + step.backward_s + step.optimizer_s);
    sum_s += steps_s.back();
  }
  const auto fast = steps_s.begin() + static_cast<std::ptrdiff_t>((steps_s.size() - 1) / 10);
  std::nth_element(steps_s.begin(), fast, steps_s.end());
  return sum_s > 0 ? std::max(0.0, 1 - *fast * static_cast<double>(steps_s.size()) / sum_s) : 0;
}

std::string disturbed_text(const StepProfile& profile) {
  if (profile.shared_device) return {};
  std::size_t points = 0, of_device = 0;
  double most = 0, most_of_device = 0;
  for (const ProfilePoint& point : profile.points) {
    if (!disturbed(point)) continue;
    const double waited = point.waited_share.value_or(0), for_device = point.device_waited_share.value_or(0);
    if (waited > kMostWaited) ++points;
    if (for_device > kMostDeviceWaited) ++of_device;
    most = std::max(most, waited);
    most_of_device = std::max(most_of_device, for_device);
  }
  const auto at = [&](std::size_t some) {
    return "at " + std::to_string(some) + " of " + std::to_string(profile.points.size()) + " points ";
  };
  const std::string begin = "the step times of " + profile.source + " were disturbed: ";
  const std::string by_cores = at(points) + "threads waited for a core, up to " + percent(most) +
                               " of the time, because of other programs or a CPU quota";
  const std::string by_device = at(of_device) + "steps waited for the device, up to " +
                                percent(most_of_device) + " of the time or more, because of other programs";
  if (points > 0) return begin + by_cores + (of_device > 0 ? "; " + by_device : "");
  return of_device > 0 ? begin + by_device : "";
}

std::string superseded_text(const StepProfile& profile) {
  if (!profile.superseded) return {};
  const auto& [date, reason, difference] = *profile.superseded;
  return "the step times of " + profile.source + " are superseded since " + date + ": " + reason +
         (difference.empty() ? "" : "; " + difference);
}

std::optional<double> payload_bytes_per_s(const StepProfile& profile, const WireFormat& format, int others) {
  if (!profile.synchronisation) return std::nullopt;
  if (format.sparse()) {
    const auto& sparse = profile.synchronisation->sparse;
    if (!sparse) return std::nullopt;
    const double per_element_s =
        sparse->choose_s_per_element / std::max(1, others) + sparse->add_s_per_element;
    return format.bytes_per_element() / per_element_s;
  }
  const ElementType dtype = format.type == ElementType::fp16 ? ElementType::bf16 : format.type;
  for (const auto& [measured, bytes_per_s] : profile.synchronisation->payload_rates) {
    if (measured == dtype) return bytes_per_s;
  }
  return std::nullopt;
}

std::string sharing_text(const StepProfile& profile, double waited_share, double device_waited_share) {
  const std::string waits = waits_text(waited_share, device_waited_share);
  if (!profile.shared_device) return waits;
  return "timed while other processes shared the device on purpose" + (waits.empty() ? "" : "; " + waits);
}

std::vector<Provenance> step_provenance(const StepProfile& profile, const StepEstimate& estimate) {
  const bool extrapolated = estimate.extrapolated;
  std::string sharing = sharing_text(profile, estimate.waited_share, estimate.device_waited_share);
  if (!sharing.empty()) sharing = "; " + sharing;
  const std::string taken = profile.device_name + ", " + profile.dtype + ", " + profile.measured_at;
  const std::string beyond = extrapolated ? "extrapolated beyond the measured expert counts: " : "";
  if (!profile.origin) {
    return {{"step time", extrapolated ? Origin::assumed : Origin::measured,
             beyond + taken + " (" + profile.source + ")" + sharing}};
  }
  const ProfileOrigin& origin = *profile.origin;
  const bool assumed = extrapolated || !origin.scaled.empty();
  const Origin how = assumed                   ? Origin::assumed
                     : origin.composed.empty() ? Origin::measured
                                               : Origin::computed;
  std::string detail = beyond + (origin.scaled.empty() ? "" : "scaled " + origin.scaled + ": ") +
                       (origin.composed.empty() ? "" : "composed " + origin.composed + ": ");
  if (origin.file.empty()) {
    detail += taken + ", " + origin.kind + " (" + profile.source + ")";
  } else {
    detail += taken + ", imported from a " + origin.kind + " log: " + origin.file + ", " + origin.lines +
              ", SHA-256 " + origin.sha256.substr(0, 12) + "… (" + profile.source + ")";
  }
  std::vector<Provenance> stated = {{"step time", how, detail + sharing}};
  if (origin.whole_steps) {
    stated.push_back({"parts of a step", Origin::assumed,
                      "the log has times of whole steps only: a third is assumed to be forward and the rest "
                      "backward; the optimiser's time is part of both and grows with the batch"});
  }
  if (origin.gpus > 1) {
    stated.push_back({"step time of one GPU", Origin::computed,
                      "each of the " + std::to_string(origin.gpus) +
                          " GPUs has an equal share of the step's sequences; the time includes the "
                          "communication among them"});
  }
  if (recomputes(profile)) {
    stated.push_back({"recomputation", how,
                      "the timed steps include " + std::string(to_string(origin.recomputation)) +
                          " activation checkpointing"});
  } else if (origin.recomputation == Recomputation::unstated) {
    stated.push_back(
        {"recomputation", Origin::assumed, "none in the timed steps, because the profile does not state it"});
  }
  return stated;
}

StepSample median_step(const ProfilePoint& point) {
  std::vector<double> forward, backward, optimizer, totals;
  for (const StepSample& sample : point.samples) {
    totals.push_back(sample.forward_s + sample.backward_s + sample.optimizer_s);
    forward.push_back(sample.forward_s);
    backward.push_back(sample.backward_s);
    optimizer.push_back(sample.optimizer_s);
  }
  StepSample middle = {median(forward), median(backward), median(optimizer)};
  // The parts of a step vary together if other programs take turns with it: the median step is then longer
  // than the medians of its parts.
  const double whole_s = median(totals), parts_s = middle.forward_s + middle.backward_s + middle.optimizer_s;
  if (parts_s > 0) {
    for (double* part : {&middle.forward_s, &middle.backward_s, &middle.optimizer_s})
      *part *= whole_s / parts_s;
  }
  return middle;
}

std::vector<const ProfilePoint*> points_of(const StepProfile& profile, std::int64_t micro_batch_sequences,
                                           bool skip_token) {
  const bool imported = profile.origin && !profile.origin->file.empty();
  std::vector<const ProfilePoint*> same, logged;
  for (const ProfilePoint& point : profile.points) {
    if (point.skip_token != skip_token) continue;
    if (point.micro_batch_sequences == micro_batch_sequences) same.push_back(&point);
    if (imported) logged.push_back(&point);
  }
  if (same.empty()) same = logged;
  double most = 0;
  for (const ProfilePoint* point : same) most = std::max(most, point->timed_sequences());
  std::erase_if(same, [&](const ProfilePoint* point) { return point->timed_sequences() != most; });
  return same;
}

std::int64_t usual_micro_batch(const StepProfile& profile) {
  const ProfilePoint* most = nullptr;
  for (const ProfilePoint& point : profile.points) {
    if (most == nullptr || point.timed_sequences() > most->timed_sequences()) most = &point;
  }
  return most == nullptr ? 0 : most->micro_batch_sequences;
}

StepEstimate estimate_step(const StepProfile& profile, std::int64_t micro_batch_sequences,
                           double local_experts, bool skip_token) {
  std::vector<const ProfilePoint*> points = points_of(profile, micro_batch_sequences, skip_token);
  if (points.empty()) {
    throw InputError(
        "compute.profile",
        "no measured step of " + std::to_string(micro_batch_sequences) + " sequences " +
            (skip_token ? "with" : "without") + " skip-token in " + profile.source,
        "a micro-batch size that the profile contains (" + measured_batches(profile, skip_token) + ")",
        "fomoe-train profile --micro-batch-sequences " + std::to_string(micro_batch_sequences) +
            (skip_token ? " --skip-token" : "") + " …");
  }
  std::sort(points.begin(), points.end(),
            [](const ProfilePoint* a, const ProfilePoint* b) { return a->local_experts < b->local_experts; });
  const auto at = [](const ProfilePoint* point) { return static_cast<double>(point->local_experts); };
  const auto exact = std::find_if(points.begin(), points.end(),
                                  [&](const ProfilePoint* p) { return at(p) == local_experts; });
  const auto of = [](const ProfilePoint& point, bool extrapolated) -> StepEstimate {
    return {median_step(point),
            extrapolated,
            point.accumulation_s.value_or(0),
            point.timed_sequences(),
            point.micro_batch_sequences,
            point.waited_share.value_or(0),
            point.device_waited_share.value_or(0)};
  };
  if (exact != points.end()) return of(**exact, false);
  if (points.size() == 1) return of(*points.front(), true);

  // The segment that contains the wanted count, or the nearest one.
  std::size_t upper = 1;
  while (upper + 1 < points.size() && at(points[upper]) < local_experts) ++upper;
  const ProfilePoint& low = *points[upper - 1];
  const ProfilePoint& high = *points[upper];
  const double share = (local_experts - at(&low)) / (at(&high) - at(&low));
  const StepSample a = median_step(low), b = median_step(high);
  return {{lerp_clamped(a.forward_s, b.forward_s, share), lerp_clamped(a.backward_s, b.backward_s, share),
           lerp_clamped(a.optimizer_s, b.optimizer_s, share)},
          share < 0 || share > 1,
          lerp_clamped(low.accumulation_s.value_or(0), high.accumulation_s.value_or(0), share),
          low.timed_sequences(),
          low.micro_batch_sequences,
          std::max(low.waited_share.value_or(0), high.waited_share.value_or(0)),
          std::max(low.device_waited_share.value_or(0), high.device_waited_share.value_or(0))};
}

}  // namespace fomoe::costmodel
