#include <initializer_list>
#include <string>

#include "experiments/scenario/sections/sections.hpp"

namespace fomoe::scenario {

void displace_alternatives(Document& document) {
  // Alternative keys that are themselves overridden are kept. Such a key adds to the new choice, or it
  // contradicts the choice and the reader refuses it.
  const auto displace = [&](const std::string& table, const char* by,
                            std::initializer_list<const char*> names) {
    if (!document.overridden(table + '.' + by)) return;
    for (const char* name : names) {
      if (!document.overridden(table + '.' + name)) document.displace(table, name);
    }
  };
  displace("model", "preset",
           {"d_model", "layers", "heads", "experts", "active_experts", "d_expert", "vocabulary",
            "sequence_length", "hf_config", "dense_parameters", "expert_parameters"});
  displace("model", "hf_config",
           {"preset", "d_model", "layers", "heads", "experts", "active_experts", "d_expert", "vocabulary",
            "dense_parameters", "expert_parameters"});
  displace("model", "dense_parameters",
           {"preset", "d_model", "layers", "heads", "experts", "active_experts", "d_expert", "vocabulary",
            "hf_config", "expert_parameters"});
  displace("workload", "global_batch_tokens", {"global_batch_sequences"});
  displace("workload", "global_batch_sequences", {"global_batch_tokens"});
  displace("compute", "profile", {"step_time", "peak_flops", "mfu"});
  displace("compute", "step_time", {"profile", "micro_batch_sequences", "peak_flops", "mfu"});
  displace("compute", "peak_flops", {"profile", "micro_batch_sequences", "step_time"});
  // Another device replaces all keys that describe the device.
  displace("compute", "accelerator", {"peak_flops", "gpu_memory"});
  if (document.overridden("compute.accelerator") && !document.overridden("energy.gpu_power"))
    document.displace("energy", "gpu_power");
  // With an MFU, the device also determines the step time.
  if (document.overridden("compute.accelerator") && document.overridden("compute.mfu"))
    displace("compute", "mfu", {"profile", "micro_batch_sequences", "step_time", "peak_flops"});
  displace("platform", "file", {"preset", "bandwidth", "uplink", "downlink", "latency"});
  displace("platform", "preset", {"file", "bandwidth", "uplink", "downlink", "latency"});
  displace("platform", "use_sites", {"sites"});
  displace("platform", "sites", {"use_sites"});
  displace("platform", "bandwidth", {"uplink", "downlink"});
  displace("prices", "file", {"gpu_hour", "egress_per_gb", "port_month", "kwh", "as_of"});
  displace("prices", "gpu_hour", {"file", "pricing"});
  displace("quality", "model", {"file"});
  displace("quality", "file", {"model"});
  displace("failures", "checkpoint_time", {"checkpoint_rounds"});
  displace("failures", "checkpoint_rounds", {"checkpoint_time"});
  displace("failures", "checkpoint_cost", {"storage_bandwidth"});
  displace("failures", "storage_bandwidth", {"checkpoint_cost"});
  if (document.overridden("platform.downlink")) displace("platform", "uplink", {"bandwidth"});
}

}  // namespace fomoe::scenario
