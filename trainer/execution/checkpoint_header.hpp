// What a checkpoint file says about its tensors, in the metadata of its safetensors header.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "costmodel/inputs/model_shape.hpp"
#include "costmodel/plan/plan.hpp"
#include "trainer/comm/digest.hpp"
#include "trainer/io/safetensors.hpp"
#include "trainer/model/constants.hpp"
#include "trainer/model/parameters.hpp"

namespace fomoe::trainer {

/// The name of an entry of the digest that checkpoints of earlier versions lack.
inline constexpr const char* kWork = "who computes how much, and who averages with whom";

struct CheckpointHeader {
  Digest digest;  // what determines the weights of the run (agreement.hpp)
  costmodel::NodeId node = 0;
  costmodel::NodeId nodes = 1;            // nodes of the run
  std::vector<costmodel::NodeId> absent;  // the nodes without which the run trained
  std::int64_t rounds = 0;                // rounds that the run had completed
  std::int64_t steps = 0;                 // inner steps that the node had made; a server makes none
  costmodel::ModelShape model;
  ModelConstants constants;
  ExpertChoice experts;  // the experts that the node holds
  /// The counts of updates of the node's experts, by layer and local expert.
  std::vector<std::vector<ExpertSteps>> expert_steps;
};

Metadata to_metadata(const CheckpointHeader& header);

/// Reads what to_metadata() wrote. `path` stands in the errors. Throws FileError if the file has another
/// format, and UnusableFile if a value is missing or wrong. Experts are then within the model, and each of
/// them has its counts.
CheckpointHeader checkpoint_header(const Metadata& metadata, const std::string& path);

}  // namespace fomoe::trainer
