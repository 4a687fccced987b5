#include "experiments/step_profiles/compose.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/step_profiles/depth.hpp"
#include "platforms/support/input_error.hpp"

namespace fomoe::step_profiles {
namespace {

using costmodel::ProfilePoint;
using costmodel::StepProfile;
using costmodel::StepSample;

void check(const StepProfile& shallow, const StepProfile& deep, std::int64_t layers) {
  const std::string two_depths = "fomoe-train profile --model large --layers 2 …, and --layers 4";
  if (!one_model(shallow.model, deep.model))
    throw InputError("profiles", "two models that differ in more than the number of layers",
                     "one model at two depths", two_depths);
  if (shallow.device_name != deep.device_name || shallow.dtype != deep.dtype) {
    throw InputError("profiles",
                     fmt::format("{} in {} and {} in {}", shallow.device_name, shallow.dtype,
                                 deep.device_name, deep.dtype),
                     "one device and one number format", two_depths);
  }
  if (shallow.model.layers >= deep.model.layers) {
    throw InputError("profiles", fmt::format("{} and {} layers", shallow.model.layers, deep.model.layers),
                     "the shallow model first, and a deeper one", two_depths);
  }
  if (layers < deep.model.layers) {
    throw InputError("--layers", std::to_string(layers),
                     fmt::format("at least the {} layers of the deeper profile", deep.model.layers),
                     fmt::format("--layers {}", 2 * deep.model.layers));
  }
  for (const StepProfile* profile : {&shallow, &deep}) {
    if (profile->origin && (!profile->origin->composed.empty() || !profile->origin->scaled.empty()))
      throw InputError("profiles", "times that were composed or scaled already", "measured times",
                       two_depths);
  }
}

}  // namespace

StepProfile composed_profile(const StepProfile& shallow, const StepProfile& deep, std::int64_t layers) {
  check(shallow, deep, layers);
  const auto a = static_cast<double>(shallow.model.layers), b = static_cast<double>(deep.model.layers);
  const double steps = (static_cast<double>(layers) - a) / (b - a);  // t(L) = t(a) + steps·(t(b) − t(a))
  const auto along = [&](double at_a, double at_b) { return at_a + steps * (at_b - at_a); };

  StepProfile composed = deep;
  if (!composed.superseded && shallow.superseded) {
    composed.superseded = shallow.superseded;
    composed.source = shallow.source;
  }
  composed.shared_device = shallow.shared_device || deep.shared_device;
  composed.model = at_depth(shallow.model, deep.model, layers);
  composed.model.name = "custom";
  composed.points.clear();
  for (const ProfilePoint& point : deep.points) {
    const auto other = std::find_if(shallow.points.begin(), shallow.points.end(), [&](const ProfilePoint& p) {
      return p.micro_batch_sequences == point.micro_batch_sequences &&
             p.sequences_per_gpu == point.sequences_per_gpu && p.local_experts == point.local_experts &&
             p.skip_token == point.skip_token && p.memory_counter == point.memory_counter;
    });
    if (other == shallow.points.end()) continue;
    const StepSample few = median_step(*other), many = median_step(point);
    if (many.forward_s < few.forward_s || many.backward_s < few.backward_s ||
        many.optimizer_s < few.optimizer_s) {
      throw InputError(
          "profiles",
          fmt::format("a negative time per layer with {} sequences and {} experts",
                      point.micro_batch_sequences, point.local_experts),
          "times that grow with the number of layers, from profiles with more layers or from an idle machine",
          "--layers 2 and --layers 8");
    }
    const double memory =
        along(static_cast<double>(other->peak_memory_bytes), static_cast<double>(point.peak_memory_bytes));
    ProfilePoint whole{point.micro_batch_sequences,
                       point.local_experts,
                       point.skip_token,
                       std::llround(std::max(0.0, memory)),
                       {}};
    whole.sequences_per_gpu = point.sequences_per_gpu;
    whole.micro_batches = point.micro_batches;
    whole.memory_counter = point.memory_counter;
    // What was waited for is not known of the composed time, but of both that it is made of.
    const auto larger = [](std::optional<double> x, std::optional<double> y) {
      return x || y ? std::optional(std::max(x.value_or(0), y.value_or(0))) : std::nullopt;
    };
    whole.waited_share = larger(other->waited_share, point.waited_share);
    whole.device_waited_share = larger(other->device_waited_share, point.device_waited_share);
    // One composed step from each pair of measured ones: their spread is that of both measurements, which the
    // extrapolation multiplies. A part that this makes negative is noise of a part that takes no time.
    for (std::size_t i = 0; i < std::min(other->samples.size(), point.samples.size()); ++i) {
      const StepSample &a_step = other->samples[i], &b_step = point.samples[i];
      whole.samples.push_back({std::max(0.0, along(a_step.forward_s, b_step.forward_s)),
                               std::max(0.0, along(a_step.backward_s, b_step.backward_s)),
                               std::max(0.0, along(a_step.optimizer_s, b_step.optimizer_s))});
    }
    if (other->accumulation_s && point.accumulation_s)
      whole.accumulation_s = std::max(0.0, along(*other->accumulation_s, *point.accumulation_s));
    composed.points.push_back(std::move(whole));
  }
  if (composed.points.empty())
    throw InputError("profiles", "no point in common", "the same micro-batches and expert counts in both",
                     "--micro-batch-sequences 1 --local-experts 32");
  if (!composed.origin) {
    composed.origin.emplace();
    composed.origin->kind = "fomoe-train";
  }
  composed.origin->composed =
      fmt::format("of {} layers, extrapolated linearly from steps with {} and {} layers", layers,
                  shallow.model.layers, deep.model.layers);
  return composed;
}

}  // namespace fomoe::step_profiles
