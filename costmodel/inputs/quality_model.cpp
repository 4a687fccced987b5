#include "costmodel/inputs/quality_model.hpp"

namespace fomoe::costmodel {

const std::vector<std::string>& quality_scope_names() {
  static const std::vector<std::string> names = {
      "parameters",     "vocabulary", "sequence_length",        "experts",
      "active_experts", "tokens",     "global_batch_sequences", "reshuffle_rounds"};
  return names;
}

}  // namespace fomoe::costmodel
