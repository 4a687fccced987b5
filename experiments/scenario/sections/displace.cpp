#include <initializer_list>
#include <string>
#include <string_view>

#include "experiments/scenario/sections/sections.hpp"

namespace fomoe::scenario {

void displace_alternatives(Document& document) {
  // Alternative keys that are themselves overridden are kept. Such a key adds to the new choice, or it
  // contradicts the choice and the reader refuses it.
  const auto displace = [&](const std::string& table, const char* by,
                            std::initializer_list<const char*> names) {
    if (!document.chosen(table + '.' + by)) return;
    for (const char* name : names) {
      if (!document.chosen(table + '.' + name)) document.displace(table, name);
    }
  };
  // Each of these keys describes the whole model.
  for (const char* chosen : {"preset", "hf_config", "safetensors", "shape", "dense_parameters"}) {
    for (const char* other : {"preset", "d_model", "layers", "heads", "experts", "active_experts", "d_expert",
                              "d_ffn", "vocabulary", "hf_config", "multi_token_prediction", "safetensors",
                              "shape", "dense_parameters", "expert_parameters"}) {
      // The modules of another config may count as well.
      const bool belongs =
          std::string_view(chosen) == "hf_config" && std::string_view(other) == "multi_token_prediction";
      if (std::string_view(chosen) != other && !belongs) displace("model", chosen, {other});
    }
  }
  displace("model", "preset", {"sequence_length"});
  displace("workload", "global_batch_tokens", {"global_batch_sequences"});
  displace("workload", "global_batch_sequences", {"global_batch_tokens"});
  // A micro-batch belongs to a profile that is replaced, not to GPUs.
  const toml::table* compute = document.root().get_as<toml::table>("compute");
  const bool profiled =
      compute != nullptr && compute->contains("profile") && !document.chosen("compute.profile");
  displace("compute", "profile", {"step_time", "peak_flops", "mfu", "kernel_efficiency"});
  displace("compute", "step_time", {"profile", "peak_flops", "mfu", "kernel_efficiency"});
  displace("compute", "peak_flops", {"profile", "step_time"});
  // Another device replaces all keys that describe the device.
  displace("compute", "accelerator", {"peak_flops", "gpu_memory"});
  if (document.chosen("compute.accelerator") && !document.chosen("energy.gpu_power"))
    document.displace("energy", "gpu_power");
  displace("compute", "gpus_per_site", {"data_parallel"});
  displace("compute", "data_parallel", {"gpus_per_site"});
  displace("compute", "mfu", {"kernel_efficiency"});
  displace("compute", "kernel_efficiency", {"mfu"});
  // With a share of the peak, the device also determines the step time.
  for (const char* share : {"mfu", "kernel_efficiency"}) {
    if (document.chosen("compute.accelerator") && document.chosen(std::string("compute.") + share))
      displace("compute", share, {"profile", "step_time", "peak_flops"});
  }
  if (profiled && !document.root()["compute"].as_table()->contains("profile") &&
      !document.chosen("compute.micro_batch_sequences"))
    document.displace("compute", "micro_batch_sequences");
  displace("platform", "file", {"preset", "bandwidth", "uplink", "downlink", "latency"});
  displace("platform", "preset", {"file", "bandwidth", "uplink", "downlink", "latency"});
  displace("platform", "use_sites", {"sites"});
  displace("platform", "bandwidth", {"uplink", "downlink"});
  displace("prices", "file", {"gpu_hour", "egress_per_gb", "port_month", "kwh", "as_of"});
  displace("quality", "model", {"file", "equal_loss_factor"});
  displace("quality", "file", {"model", "equal_loss_factor", "mixtures"});
  displace("quality", "equal_loss_factor", {"model", "file", "interpolate", "mixtures"});
  displace("failures", "checkpoint_time", {"checkpoint_rounds"});
  displace("failures", "checkpoint_rounds", {"checkpoint_time"});
  if (document.chosen("platform.downlink")) displace("platform", "uplink", {"bandwidth"});
}

}  // namespace fomoe::scenario
