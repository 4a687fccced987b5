// The settings of a scenario's [trainer] table as options of the executor, and what reports say of the run.
#include <cstdlib>

#include "costmodel/compute/operation_seconds.hpp"
#include "costmodel/inputs/at_site.hpp"
#include "platforms/support/input_error.hpp"
#include "trainer/device/cuda_device.hpp"
#include "trainer/device/device_info.hpp"
#include "trainer/run/absent_sites.hpp"
#include "trainer/run/measured_report.hpp"
#include "trainer/run/run_data.hpp"
#include "trainer/run/training_run.hpp"

namespace fomoe::trainer {

namespace {

// A setting without effect would be taken for one that has been applied.
void refuse_router_settings(const RunRequest& request) {
  if (request.scenario.model.experts > 0) return;
  const auto refuse = [](const std::string& key) {
    throw UsageError("trainer." + key +
                     ": got this key for a model without experts, which has no router; expected no such key; "
                     "for example a scenario without " +
                     key);
  };
  const scenario::TrainerSettings& settings = request.settings;
  if (settings.balance_weight > 0) refuse("balance_weight");
  if (settings.router_temperature != 1) refuse("router_temperature");
}

// A real run waits for all sites, and it cannot stop a site by itself.
void refuse_attendance(const costmodel::Scenario& scenario) {
  const auto refuse = [](const std::string& key, const std::string& got, const std::string& reason) {
    throw UsageError(key + ": got " + got + "; expected no such key with fomoe-train, which " + reason +
                     "; for example a scenario without " + key);
  };
  if (scenario.strategy.quorum)
    refuse("strategy.quorum", std::to_string(*scenario.strategy.quorum),
           "waits for all sites in every round");
  if (scenario.failures && !scenario.failures->outages.empty())
    refuse("failures.outages", "outages", "cannot stop sites at given times; fomoe simulate can");
}

constexpr int kMostStreams = 64;  // every process then has as many sockets for each other site

}  // namespace

TrainingOptions training_options(const RunRequest& request) {
  const scenario::TrainerSettings& settings = request.settings;
  TrainingOptions options;
  options.inner.learning_rate = settings.learning_rate;
  options.inner.weight_decay = settings.weight_decay;
  options.inner.restart_warmup_steps = static_cast<double>(settings.restart_warmup_steps);
  options.outer.kind = request.scenario.strategy.outer_optimizer;
  options.outer.learning_rate = settings.outer_learning_rate;
  options.outer.momentum = settings.outer_momentum;
  options.outer.keeps_momentum =
      settings.outer_momentum > 0 || !request.scenario.strategy.method->without_outer_momentum;
  options.inner.beta1 = settings.beta1;
  options.inner.beta2 = settings.beta2;
  options.inner.epsilon = settings.epsilon;
  options.inner.complete_p = settings.rate_transfer == "complete_p";
  options.restart_moments = settings.inner_moments == "restart";
  options.rate.warmup_steps = settings.warmup_steps;
  options.rate.schedule = schedule_named(settings.schedule);
  options.rate.decay_steps = settings.decay_steps;
  options.rate.final_share = settings.final_rate_share;
  const std::int64_t steps = costmodel::optimizer_steps(request.scenario);
  if (options.rate.schedule == Schedule::wsd && settings.warmup_steps + settings.decay_steps > steps &&
      !request.paced)
    throw UsageError(
        "trainer.warmup_steps: got " + std::to_string(settings.warmup_steps) +
        " steps of warm-up before the " + std::to_string(settings.decay_steps) +
        " of the decay (trainer.decay_steps), in a run of " + std::to_string(steps) +
        " steps; expected no more than the run has; for example --set trainer.warmup_steps=" +
        std::to_string(std::max<std::int64_t>(0, steps - settings.decay_steps) / 2) +
        " --set trainer.decay_steps=" + std::to_string(std::min(settings.decay_steps, steps / 2)));
  options.clip_norm = settings.clip_norm;
  options.balance_weight = settings.balance_weight;
  if (request.launch && request.scenario.network.streams > kMostStreams) {
    throw UsageError(
        "network_model.streams: got " + std::to_string(request.scenario.network.streams) +
        "; expected at most " + std::to_string(kMostStreams) +
        " with fomoe-train, which opens as many TCP connections between two sites; for example --set "
        "network_model.streams=16");
  }
  options.constants = {settings.rope_theta, settings.router_temperature};
  refuse_router_settings(request);
  refuse_attendance(request.scenario);
  options.kept_share = settings.kept_share;
  options.residual_decay = settings.error_feedback_decay;
  options.micro_batch_sequences = settings.micro_batch_sequences;
  options.paced = request.paced;
  options.norms = !request.log.empty();
  options.skip_nonfinite = settings.on_divergence == "skip_step";
  const bool cuda = settings.device == "cuda" || (settings.device == "auto" && cuda_available());
  if (cuda && !cuda_available()) {
    throw UsageError("trainer.device: got cuda, but " + why_no_cuda() +
                     "; for example --set trainer.device=cpu");
  }
  options.device = at::kCPU;
  if (cuda) {
    // Processes of one machine take its GPUs in turn, by local rank.
    const int index = request.launch ? request.launch->local_rank % cuda_device_count() : 0;
    options.device = at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(index));
    set_cuda_device(options.device);
  }
  const bool bf16 = settings.dtype.empty() ? cuda : settings.dtype == "bf16";
  options.dtype = bf16 ? at::kBFloat16 : at::kFloat;
  bool recomputes = false, outer_state_on_host = false;
  for (int site = 0; site < request.scenario.sites(); ++site) {
    const costmodel::SiteGpus& gpus = costmodel::gpus_of_site(request.scenario, site);
    recomputes = recomputes || gpus.activation_checkpointing;
    outer_state_on_host = outer_state_on_host || gpus.outer_state_on == costmodel::OuterStateOn::host;
  }
  if (cuda && outer_state_on_host) {
    throw UsageError(
        "compute.outer_state_on: got host; expected device, where fomoe-train keeps the outer optimiser's "
        "state; for example --set compute.outer_state_on=device");
  }
  const std::string refused =
      recomputes
          ? "a backward pass that computes layers again (compute.activation_checkpointing) cannot be recorded"
          : recording_refused(request.scenario.model, options.device, options.dtype);
  if (settings.cuda_graph == "on" && !refused.empty()) {
    throw UsageError("trainer.cuda_graph: got on, but " + refused +
                     "; expected auto or off; for example --set trainer.cuda_graph=auto");
  }
  if (cuda && settings.cuda_graph == "auto") options.kernel_by_kernel = refused;
  options.launches = settings.cuda_graph != "off" && refused.empty() ? Launches::by_graph : Launches::by_host;
  return options;
}

ReportContext report_context(const RunRequest& request, const costmodel::Plan& plan,
                             const AbsentSites& absent, const RunData& data, const TrainingOptions& options) {
  ReportContext context;
  context.in_turn = !request.launch.has_value();
  context.paced = request.paced;
  context.absent = absent.names(plan, request.scenario.platform);
  context.trained_share = absent.trained_share(plan);
  if (request.paced) context.pace = costmodel::OperationSeconds(request.scenario, plan).provenance();
  if (const char* links = std::getenv("FOMOE_LINKS")) context.links = links;
  context.validation_sequences = data.batches->validation_sequences();
  if (!request.paced && !request.settings.warmup_given)
    context.assumed_warmup_steps = request.settings.warmup_steps;
  if (!request.paced) {
    context.data = data.description();
    context.validation_data = data.validation_description();
  }
  context.device = options.device.is_cuda() ? cuda_name() : cpu_name();
  return context;
}

}  // namespace fomoe::trainer
