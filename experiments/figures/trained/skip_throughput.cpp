// Paper, figure "skip-token throughput": measured step time against the share of ghost experts.
#include <fmt/format.h>

#include <algorithm>

#include "costmodel/model/flops.hpp"
#include "experiments/figures/trained/perplexity_figures.hpp"
#include "experiments/figures/trained/proxy_rows.hpp"
#include "experiments/files/step_profile_io.hpp"

namespace fomoe::figures {
namespace {

double seconds(const costmodel::ProfilePoint& point) {
  const costmodel::StepSample median = costmodel::median_step(point);
  return median.forward_s + median.backward_s;  // the optimiser does not depend on tokens
}

/// Share of the experts in the time of forward and backward pass, for the committed profile. 16 layers with
/// 8,192 tokens each: half of the 0.5198 ms that "experts forward and backward" of 16,384 tokens took on the
/// same H200 (experiments/measured/h200-2026-11-26/kernels/kernels.json), of 25.91 ms.
constexpr double kMeasuredShare = 16 * 0.5198 / 2 / 25.91;

/// The profile's steps with skip-token and the largest micro-batch, those with the most experts first.
std::vector<const costmodel::ProfilePoint*> points_of(const costmodel::StepProfile& profile) {
  std::int64_t largest = 0;
  for (const costmodel::ProfilePoint& point : profile.points)
    if (point.skip_token) largest = std::max(largest, point.micro_batch_sequences);
  std::vector<const costmodel::ProfilePoint*> points;
  for (const costmodel::ProfilePoint& point : profile.points)
    if (point.skip_token && point.micro_batch_sequences == largest) points.push_back(&point);
  std::sort(points.begin(), points.end(),
            [](const auto* a, const auto* b) { return a->local_experts > b->local_experts; });
  return points;
}

}  // namespace

Figure skip_throughput(Assumptions& assume) {
  Figure figure;
  figure.columns = {"local_experts", "ghost_share",   "forward_and_backward_s",
                    "speedup",       "ideal_speedup", "share_of_ideal_saving",
                    "samples"};
  const std::string path = assume.text("profile", "");
  const double least = assume.number("least_share_of_saving", 0.8, 0, 1);
  const costmodel::StepProfile profile =
      path.empty() ? scenario::parse_step_profile(kSkipProfile, "medium-skip-token.json")
                   : scenario::read_step_profile(path);
  const costmodel::ModelShape& shape = profile.model;
  const costmodel::FlopsPerToken flops = costmodel::flops_per_token(
      shape, static_cast<double>(shape.experts), /*skip_token=*/true, costmodel::FlopsAccounting::mechanism);
  const double experts_share =
      assume.number("expert_time_share", path.empty() ? kMeasuredShare : flops.expert / flops.total(), 0, 1);
  const std::vector<const costmodel::ProfilePoint*> points = points_of(profile);
  Claim claim{
      "skip-token saves the time of the experts in proportion to the ghost share",
      "time saved at the largest ghost share over the ideal saving",
      {},
      Verdict::cannot_be_told,
      "the profile has no steps with skip-token at several numbers of local experts, all of them included"};
  if (points.size() > 1 && points.front()->local_experts == shape.experts) {
    const double whole = seconds(*points.front());
    double share_of_ideal = 0;
    for (const costmodel::ProfilePoint* point : points) {
      const double ghosts =
          1 - static_cast<double>(point->local_experts) / static_cast<double>(shape.experts);
      const double ideal = 1 / (1 - experts_share * ghosts), speedup = whole / seconds(*point);
      share_of_ideal = ghosts > 0 ? (1 - 1 / speedup) / (1 - 1 / ideal) : 0;
      figure.rows.push_back({point->local_experts, ghosts, seconds(*point), speedup, ideal, share_of_ideal,
                             static_cast<std::int64_t>(point->samples.size())});
    }
    claim.verdict = share_of_ideal >= least ? Verdict::holds : Verdict::does_not_hold;
    claim.finding = fmt::format("{:.0f} % of the ideal saving, {:.2f} times faster, on {}",
                                100 * share_of_ideal, whole / seconds(*points.back()), profile.device_name);
  }
  add_claims(figure, "measured", {claim});
  assume.state("model",
               fmt::format("d = {}, L = {}, {} experts of width {}, {} of them active, vocabulary {}, "
                           "sequences of {} tokens",
                           shape.d_model, shape.layers, shape.experts, shape.d_expert, shape.active_experts,
                           shape.vocabulary, shape.sequence_length));
  assume.state("measured", fmt::format("{} on {}, {} threads, {}", profile.measured_at, profile.device_name,
                                       profile.threads, profile.dtype));
  assume.state(
      "ideal",
      "Amdahl's law: experts take expert_time_share of the time of a step without ghosts, and a "
      "ghost share g saves the part g of it. expert_time_share is measured for the committed profile, "
      "and the share of the FLOPs for another one");
  figure.again =
      "fomoe-train profile --model medium --skip-token --local-experts 16,8,4,2,1 --device cuda --output "
      "p.json   # a "
      "minute on a GPU\nfomoe reproduce fig-skip-throughput --set profile=p.json\n";
  figure.notes = {
      "The paper measured up to 1.4 times on 8 B200 GPUs with its model of 150 M parameters, which is this "
      "one. Its experts have 5 % of the FLOPs, so 1.4 times cannot come from FLOPs alone, but from experts "
      "that take more than their share of the time: in PyTorch, one after the other, they take three "
      "quarters of a step (240 ms on this GPU, against 60 ms with grouped products; "
      "experiments/measured/h200-2026-11-26/eager). On an H100, skip-token makes forward and backward pass "
      "of that PyTorch model 1.8 times as fast with half of the experts ghosts, and 3.3 times with 15 of 16; "
      "with grouped products, 0.95 and 1.2 times (experiments/measured/h100-2026-11-28/skip_peer).",
      "`fomoe-train profile --skip-token --local-experts …` measures the same on any device, and --set "
      "profile=FILE draws it.",
      "The ghost share is 1 − N_le/N_e: random weights route evenly."};
  return figure;
}

}  // namespace fomoe::figures
