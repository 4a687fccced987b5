// What the time of a site's optimiser step follows from, and that time: one set of formulas for reports,
// plans and sweeps.
#pragma once
#include "costmodel/compute/step_seconds.hpp"
#include "costmodel/counts/counts.hpp"
#include "costmodel/inputs/scenario.hpp"
#include "costmodel/model/parallelism.hpp"

namespace fomoe::costmodel {

struct SiteStep {
  enum class From { given, assumed, profiled };  // the alternatives of ComputeSpec
  From from = From::given;
  double given_s = 0;
  AssumedDevice device;
  double flops_per_token = 0;  // of the model, at the site
  /// Of the number of experts that the site holds. The optimiser's time is that of one GPU with the whole
  /// replica.
  StepEstimate profiled;
  /// Number of GPUs among which the optimiser's time of a profile is divided: 1 if several GPUs executed the
  /// timed steps together. The sharding of fsdp among all GPUs of a site is not included (sharded_degrees).
  double optimizer_division = 1;
  /// Share of the forward pass that is executed a second time in each step because of activation
  /// checkpointing, and that the given times do not include. Timed steps of a run with activation
  /// checkpointing include it.
  double repeated = 0;
  /// Executed FLOPs of the forward and the backward pass ÷ model FLOPs: with what is repeated, and without
  /// the half of attention that causal masking removes.
  double executed_per_model_flops = 1;
  /// Communication among the GPUs of a site comes on top of the step time. A given step time, an MFU and
  /// steps that several GPUs executed together include it.
  bool adds_communication = false;
  bool includes_optimizer = true;  // the times include the inner optimiser: not those of a kernel efficiency
  double dense = 0, experts = 0;   // parameters that the inner optimiser updates

  /// Counted FLOPs ÷ model FLOPs of a step whose time follows from FLOPs. An MFU counts model FLOPs only.
  [[nodiscard]] double counted_per_model_flops() const {
    return device.mfu > 0 ? 1.0 : executed_per_model_flops;
  }
};

/// `site` is the scenario of a site (AtSite), and `counts` are those of the site. Throws InputError if the
/// profile has no step of the scenario's micro-batch.
SiteStep site_step(const Scenario& site, const SiteCounts& counts);

/// Times of one optimiser step of a site whose part of the batch is load.sequences. If `inside` is given, it
/// is set to the communication among the GPUs of the site, which the result includes.
StepSeconds step_seconds(const SiteStep& step, const SiteModel& model, const SiteLoad& load,
                         IntraSiteSeconds* inside = nullptr);

}  // namespace fomoe::costmodel
