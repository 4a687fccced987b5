#include "costmodel/compute/compute_times.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "costmodel/compute/site_step.hpp"
#include "costmodel/compute/state_updates.hpp"
#include "costmodel/compute/step_seconds.hpp"
#include "costmodel/model/flops.hpp"
#include "costmodel/plan/building_blocks.hpp"
#include "costmodel/plan/method.hpp"
#include "costmodel/plan/plan.hpp"
#include "costmodel/plan/site_shares.hpp"
#include "platforms/support/input_error.hpp"

namespace fomoe::costmodel {

namespace {

// A profile is valid only for the model that was timed. The name is a label and not part of the shape.
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
  throw InputError("compute.profile", "step times of another model (" + describe(profile.model) + ")",
                   "step times of the scenario's model (" + describe(scenario.model) + ")",
                   "fomoe-train profile --scenario S.toml --output P.json");
}

void state_profile(const Scenario& scenario, const ProfiledCompute& compute, const SiteStep& step,
                   double sequences, std::vector<Provenance>& provenance) {
  const StepProfile& profile = compute.profile;
  const SiteGpus& gpus = scenario.gpus;
  const bool together = executed_together(profile);
  provenance = step_provenance(profile, step.profiled);
  const bool sums = step.profiled.accumulation_s > 0 && sequences / gpus.count > step.profiled.sequences;
  if (sums)
    provenance.push_back(
        {"sums over micro-batches", provenance.front().origin,
         "the time to add a micro-batch's gradients to those of the step, from the profile"});
  const std::int64_t timed = step.profiled.timed_micro_batch, wanted = compute.micro_batch_sequences;
  if (timed != wanted) {
    provenance.push_back(
        {"micro-batch", Origin::assumed,
         std::to_string(wanted) + " sequences, from compute.micro_batch_sequences; the log " +
             (timed > 0 ? "has " + std::to_string(timed) : std::string("does not state it")) +
             ", and the step time stays that of the log"});
  } else if (timed == 0) {
    provenance.push_back(
        {"micro-batch", Origin::assumed,
         "not known, because the log or its import by an earlier version does not state it; import the log "
         "again, or give compute.micro_batch_sequences"});
  }
  if (together && gpus.count != profile.origin->gpus) {
    provenance.push_back({"communication inside a site", Origin::assumed,
                          "as among the " + std::to_string(profile.origin->gpus) +
                              " GPUs that executed the timed steps, although a site has " +
                              std::to_string(gpus.count)});
  }
  if (!together && gpus.gpus_per_replica() > 1) {
    provenance.push_back(
        {"step time of a model-parallel shard", Origin::assumed,
         "the measured step time ÷ (tensor_parallel · context_parallel · pipeline_parallel)"});
  }
  if (!together && gpus.sharded > 1)
    provenance.push_back(
        {"optimiser time of a shard", Origin::assumed, "the measured optimiser time ÷ sharded"});
  if (step.repeated > 0)
    provenance.push_back(
        {"recomputation", Origin::assumed,
         "the measured forward time, a second time, without the unembedding's share of the FLOPs"});
}

std::vector<Provenance> step_time_provenance(const Scenario& scenario, const SiteStep& step,
                                             double sequences) {
  std::vector<Provenance> provenance;
  if (step.from == SiteStep::From::profiled) {
    state_profile(scenario, std::get<ProfiledCompute>(scenario.compute), step, sequences, provenance);
  } else if (step.from == SiteStep::From::given) {
    provenance.push_back({"step time", Origin::assumed,
                          scenario.gpus.count == 1
                              ? "given in the scenario"
                              : "given in the scenario for all GPUs of a site together"});
  } else {
    provenance.push_back(
        {"step time", Origin::assumed,
         step.device.mfu > 0
             ? "model FLOPs ÷ (MFU · peak), which includes recomputation and all communication inside "
               "a site"
             : "executed FLOPs ÷ (kernel efficiency · peak), plus communication inside a site"});
  }
  return provenance;
}

// Names each part of the communication among the GPUs of a site.
void state_intra_site(const Scenario& scenario, const IntraSiteSeconds& seconds,
                      std::vector<Provenance>& provenance) {
  const SiteGpus& gpus = scenario.gpus;
  if (gpus.count == 1) return;
  const auto state = [&](const char* name, double value, const char* formula) {
    if (value > 0) provenance.push_back({name, Origin::computed, formula});
  };
  state("gradients inside a site", seconds.gradients,
        "2 B · [(z−1)/z + 2(r−1)/(r·z)] of a GPU's parameters ÷ intra_site_bandwidth, not overlapped");
  state("weights gathered after the optimiser", seconds.updated_weights,
        "2 B · (z−1)/z of a GPU's parameters ÷ intra_site_bandwidth");
  state("weights gathered in each micro-batch", seconds.weight_gathers,
        "2 · 2 B · (z−1)/z of a GPU's parameters ÷ intra_site_bandwidth, not overlapped");
  state("tensor-parallel all-reduces", seconds.tensor,
        "4 per layer and micro-batch (6 with recomputation) · 2(t−1)/t · 2 B · tokens · d_model");
  state("expert-parallel all-to-alls", seconds.expert,
        "4 per layer and micro-batch (6 with recomputation) · (e−1)/e · 2 B · tokens · experts · d_model");
  state("transfers between pipeline stages", seconds.stages, "2 · 2 B · tokens · d_model");
  state("pipeline bubble", seconds.bubble, "(p−1)/micro-batches of the time of all micro-batches");
  if (gpus.intra_site_bytes_per_s == 0) {
    provenance.push_back({"communication inside a site", Origin::assumed,
                          "0 s, because compute.intra_site_bandwidth is not given"});
  }
  const bool counts_micro_batches = gpus.pipeline_parallel > 1 || (gpus.sharded > 1 && gpus.zero_stage == 3);
  if (counts_micro_batches && micro_batch_sequences(scenario) == 0) {
    provenance.push_back(
        {"micro-batch", Origin::assumed, "1 sequence, because compute.micro_batch_sequences is not given"});
  }
}

// States the outer step and, if the step time does not include it, AdamW.
void state_updates(const Scenario& scenario, const SiteModel& model, const WireBytes& wire,
                   bool includes_optimizer, std::vector<Provenance>& provenance) {
  const bool no_outer_state = model.outer_bytes_per_parameter == 0;
  const bool measured = model.outer_step_s_per_parameter > 0;
  if (scenario.gpus.memory_bytes_per_s == 0 && !measured) {
    const char* why = "0 s, because compute.memory_bandwidth is not given";
    if (!no_outer_state) provenance.push_back({"outer step time", Origin::assumed, why});
    if (!includes_optimizer) provenance.push_back({"inner optimiser", Origin::assumed, why});
    return;
  }
  if (measured && !scenario.network.payload_bytes_per_s)
    provenance.push_back({"encoding of payloads", Origin::assumed,
                          "0 s: the profile has no rate of payloads in this format, and "
                          "network_model.payload_rate is not given"});
  if (!no_outer_state) {
    std::string text = measured ? "seconds per parameter of an outer step with Nesterov momentum, from the "
                                  "profile, times parameters of a GPU"
                                : std::to_string(std::lround(outer_step_bytes(model, wire))) +
                                      " B per parameter of a GPU, with the encoding of payloads, ÷ "
                                      "memory_bandwidth";
    if (scenario.gpus.outer_state_on == OuterStateOn::host)
      text += ", and the outer state, to the GPU and back, ÷ host_bandwidth (" +
              std::to_string(std::lround(scenario.gpus.host_bytes_per_s / 1e9)) + " GB/s)";
    provenance.push_back({"outer step time", measured ? Origin::measured : Origin::computed, text});
  }
  if (!includes_optimizer)
    provenance.push_back({"inner optimiser", Origin::computed,
                          std::to_string(std::lround(optimizer_bytes(model.moment_bytes_per_parameter))) +
                              " B per parameter of a GPU ÷ memory_bandwidth"});
}

}  // namespace

std::optional<Efficiency> step_efficiency(const Scenario& scenario, double sequences,
                                          const ComputeTimes& times) {
  if (scenario.peak_flops == 0 || sequences == 0) return std::nullopt;
  const double flops =
      sequences * static_cast<double>(scenario.model.sequence_length) * times.step.flops_per_token;
  const double peak = scenario.peak_flops * scenario.gpus.count;
  Efficiency efficiency;
  efficiency.mfu = model_flops_utilisation(flops, 1 / times.step_s(), peak);
  const auto* profiled = std::get_if<ProfiledCompute>(&scenario.compute);
  // Of a log that says only that a part of each layer was computed again, the executed FLOPs are not known.
  const bool unknown_part = profiled != nullptr && profiled->profile.origin &&
                            profiled->profile.origin->recomputation == Recomputation::selective &&
                            scenario.gpus.selective_checkpointing == SelectiveCheckpointing::none;
  if (!unknown_part && (times.step.adds_communication || scenario.gpus.count == 1)) {
    const double executed = flops * times.step.executed_per_model_flops;
    efficiency.kernel_efficiency =
        executed / ((times.gradients_s - times.intra_site.before_optimizer()) * peak);
  }
  return efficiency;
}

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

void check_profile(const Scenario& scenario) {
  const auto* profiled = std::get_if<ProfiledCompute>(&scenario.compute);
  if (profiled == nullptr) return;
  check_same_model(scenario, profiled->profile);
  (void)estimate_step(profiled->profile, profiled->micro_batch_sequences, expert_shares(scenario).of_layer(0),
                      scenario.strategy.skip_token);
}

ComputeTimes compute_times(const Scenario& scenario, double sequences) {
  return compute_times(scenario, counts_of(scenario), 0, sequences);
}

ComputeTimes compute_times(const Scenario& scenario, const Counts& counts, int site, double sequences) {
  check_profile(scenario);
  const SiteModel& model = counts.at(site).model;
  SiteLoad load = counts.at(site).load;
  load.sequences = sequences;
  const WireBytes wire = wire_bytes(scenario.strategy);
  ComputeTimes times;
  times.step = site_step(scenario, counts.at(site));
  const SiteStep& step = times.step;
  const StepSeconds seconds = step_seconds(step, model, load, &times.intra_site);
  times.gradients_s = seconds.gradients_s;
  times.forward_s = seconds.forward_s;
  times.optimizer_s = seconds.optimizer_s;
  times.outer_step_s = outer_step_seconds(model, load, wire);

  times.provenance = step_time_provenance(scenario, step, sequences);
  if (step.adds_communication) state_intra_site(scenario, times.intra_site, times.provenance);
  const Method* method = scenario.strategy.method;
  if (method->inside_step != nullptr && method->inside_step(scenario) &&
      step.from != SiteStep::From::profiled)
    times.provenance.push_back(
        {"forward pass", Origin::assumed, "a third of the step: 2 of the 6 FLOPs per parameter and token"});
  times.provenance.insert(times.provenance.end(), scenario.catalogue.begin(), scenario.catalogue.end());
  state_updates(scenario, model, wire, step.includes_optimizer, times.provenance);
  return times;
}

}  // namespace fomoe::costmodel
