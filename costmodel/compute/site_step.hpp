// What the time of a site's optimiser step follows from, and that time: one set of formulas for reports,
// plans and sweeps.
#pragma once
#include "costmodel/compute/step_seconds.hpp"
#include "costmodel/inputs/scenario.hpp"
#include "costmodel/model/parallelism.hpp"
#include "costmodel/plan/plan_summary.hpp"

namespace fomoe::costmodel {

struct SiteStep {
  enum class From { given, assumed, profiled };  // the alternatives of ComputeSpec
  From from = From::given;
  double given_s = 0;
  AssumedDevice device;
  double flops_per_token = 0;
  /// Of the number of experts that the site holds. The optimiser's time is that of one GPU with the whole
  /// replica.
  StepEstimate profiled;
  double micro_batch_sequences = 1;  // of the profile
  double optimizer_division = 1;     // see costmodel::optimizer_division()
  double repeated = 0;  // share of the forward pass that is executed a second time beside the given times
  bool adds_communication = false;  // communication among GPUs comes on top: see adds_communication()
  bool includes_optimizer = true;   // the times above include the inner optimiser
  double dense = 0, experts = 0;    // parameters that the inner optimiser updates
};

/// `site` is the scenario of a site (AtSite), which holds `held_share` of the experts. Throws InputError if
/// the profile has no step of the scenario's micro-batch.
SiteStep site_step(const Scenario& site, const SiteModel& model, const Fixed& fixed, double held_share);

/// Times of one optimiser step of a site whose part of the batch is load.sequences. If `inside` is given, it
/// is set to the communication among the GPUs of the site, which the result includes.
StepSeconds step_seconds(const SiteStep& step, const SiteModel& model, const SiteLoad& load,
                         IntraSiteSeconds* inside = nullptr);

}  // namespace fomoe::costmodel
