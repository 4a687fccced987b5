#include <algorithm>
#include <string>

#include "costmodel/closed_form.hpp"
#include "costmodel/flops.hpp"
#include "costmodel/methods/method.hpp"
#include "costmodel/plan.hpp"
#include "costmodel/step_seconds.hpp"
#include "platforms/input_error.hpp"

namespace fomoe::costmodel {

namespace {

// A profile answers only for the model that was timed. The name is a label, not part of the shape.
void check_same_model(const Scenario& scenario, const StepProfile& profile) {
  ModelShape asked = scenario.model;
  asked.name = profile.model.name;
  if (asked == profile.model) return;
  const auto describe = [](const ModelShape& m) {
    return m.architecture + ", d_model " + std::to_string(m.d_model) + ", layers " +
           std::to_string(m.layers) + ", heads " + std::to_string(m.heads) + ", experts " +
           std::to_string(m.experts) + ", active " + std::to_string(m.active_experts) + ", d_expert " +
           std::to_string(m.d_expert) + ", vocabulary " + std::to_string(m.vocabulary) +
           ", sequence length " + std::to_string(m.sequence_length);
  };
  throw InputError("compute.profile", "steps of another model (" + describe(profile.model) + ")",
                   "steps of the scenario's model (" + describe(scenario.model) + ")",
                   "fomoe-train profile --scenario S.toml --output P.json");
}

ComputeTimes from_profile(const Scenario& scenario, const ProfiledCompute& compute, double sequences) {
  const StepProfile& profile = compute.profile;
  check_same_model(scenario, profile);
  const std::int64_t experts = local_experts(scenario);
  const StepEstimate step =
      estimate_step(profile, compute.micro_batch_sequences, experts, scenario.strategy.skip_token);
  ComputeTimes times;
  times.gradients_s = profiled_gradients_s(sequences, static_cast<double>(compute.micro_batch_sequences),
                                           step.micro_batch.forward_s + step.micro_batch.backward_s);
  times.forward_s = profiled_gradients_s(sequences, static_cast<double>(compute.micro_batch_sequences),
                                         step.micro_batch.forward_s);
  times.optimizer_s = step.micro_batch.optimizer_s;
  times.provenance.push_back(
      {"step time", step.extrapolated ? Origin::assumed : Origin::measured,
       std::string(step.extrapolated ? "extrapolated beyond the measured expert counts: " : "") +
           profile.device_name + ", " + profile.dtype + ", " + profile.measured_at + " (" + profile.source +
           ")"});
  return times;
}

ComputeTimes from_device(const Scenario& scenario, const AssumedDevice& device, double sequences) {
  const double flops = flops_per_token(scenario.model, local_experts(scenario), scenario.strategy.skip_token,
                                       FlopsAccounting::mechanism)
                           .total();
  ComputeTimes times;
  times.gradients_s =
      assumed_gradients_s(flops, sequences * static_cast<double>(scenario.model.sequence_length), device.mfu,
                          device.peak_flops, static_cast<double>(device.gpus_per_site));
  times.provenance.push_back(
      {"step time", Origin::assumed, "FLOPs ÷ (MFU · peak) with the scenario's MFU and peak"});
  return times;
}

}  // namespace

double work_s(const ComputeTimes& times, Work work) {
  switch (work) {
    case Work::gradients:
      return times.gradients_s;
    case Work::optimizer:
      return times.optimizer_s;
    case Work::whole_step:
      return times.step_s();
    case Work::outer_step:
      return times.outer_step_s;
    case Work::forward:
      return times.forward_s;
    case Work::backward:
      return times.backward_s();
  }
  return 0;
}

std::int64_t local_batch_sequences(const Scenario& scenario, int site) {
  return chunk_elements(scenario.workload.global_batch_sequences, scenario.sites(), site);
}

ComputeTimes compute_times(const Scenario& scenario, double sequences) {
  ComputeTimes times;
  if (const auto* profiled = std::get_if<ProfiledCompute>(&scenario.compute)) {
    times = from_profile(scenario, *profiled, sequences);
  } else if (const auto* given = std::get_if<GivenStepTime>(&scenario.compute)) {
    times.gradients_s = given->seconds;  // the whole step: what the optimiser takes of it was not given
    times.provenance.push_back({"step time", Origin::assumed, "given in the scenario"});
  } else {
    times = from_device(scenario, std::get<AssumedDevice>(scenario.compute), sequences);
  }
  if (!std::holds_alternative<ProfiledCompute>(scenario.compute)) {
    times.forward_s = kForwardShare * times.gradients_s;
    const Method* method = find_method(scenario.strategy.method);
    if (method != nullptr && method->inside_step)
      times.provenance.push_back(
          {"forward pass", Origin::assumed, "a third of the step: 2 of the 6 FLOPs per parameter and token"});
  }
  times.provenance.push_back({"outer step time", Origin::assumed, "0 s: nobody gave one"});
  return times;
}

}  // namespace fomoe::costmodel
