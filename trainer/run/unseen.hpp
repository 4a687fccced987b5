// Whether the sequences of a validation are new to a model.
#pragma once
#include <cstdint>
#include <iosfwd>

#include "trainer/run/run_data.hpp"
#include "trainer/whole/whole_model.hpp"

namespace fomoe::trainer {

/// Throws UsageError if the model was trained on the validation sequences of `data`: `sequences` from its
/// end, or another file. Says so on `out` if it is not known what the model was trained on. Only the model's
/// last training is known, and not one that this training began with.
void check_unseen(const WholeModel& whole, const RunData& data, std::int64_t sequences, std::ostream& out);

}  // namespace fomoe::trainer
