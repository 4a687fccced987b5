#include "costmodel/compute/state_updates.hpp"

#include <algorithm>
#include <cmath>

#include "costmodel/plan/building_blocks.hpp"

namespace fomoe::costmodel {

WireBytes wire_bytes(const Strategy& strategy) {
  return {format_of(strategy, Content::pseudo_gradient).bytes_per_element(),
          format_of(strategy, Content::parameter).bytes_per_element()};
}

double outer_step_seconds(const SiteModel& model, const SiteLoad& load, const WireBytes& wire) {
  const SiteGpus& gpus = model.gpus;
  const double state = model.outer_bytes_per_parameter;
  if (state == 0) return 0.0;
  double seconds = model.outer_step_s_per_parameter;
  if (seconds == 0) {
    if (gpus.memory_bytes_per_s == 0) return 0.0;
    seconds = outer_step_bytes(model, wire) / gpus.memory_bytes_per_s;
  }
  if (gpus.outer_state_on == OuterStateOn::host) seconds += 2 * state / gpus.host_bytes_per_s;
  const double tables = stage_tables(model, load, 0) / static_cast<double>(gpus.tensor_parallel) /
                        sharded_degrees(model, load).dense;
  const double parameters = updated_parameters(model, load);
  return seconds * (model.outer_state_of_embedding ? parameters : (parameters - tables));
}

double adam_seconds(const SiteModel& model, const SiteLoad& load, double dense, double experts) {
  const SiteGpus& gpus = model.gpus;
  if (gpus.memory_bytes_per_s == 0) return 0.0;
  const ShardedDegrees degrees = sharded_degrees(model, load);
  return (dense / (gpus.tensor_parallel * degrees.dense) +
          experts / (gpus.experts_divided() * degrees.experts)) /
         gpus.pipeline_parallel *
         (optimizer_bytes(model.moment_bytes_per_parameter) / gpus.memory_bytes_per_s);
}

}  // namespace fomoe::costmodel
