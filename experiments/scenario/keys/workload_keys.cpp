// Keys of the training data.
#include <cmath>

#include "experiments/scenario/keys/members.hpp"

namespace fomoe::scenario {
namespace {

using costmodel::Workload;

bool set_batch(Scenario& scenario, double value) {
  assign(scenario.workload.global_batch_sequences, value);
  return scenario.workload.batch_shares.empty() &&
         value * static_cast<double>(scenario.model.sequence_length) <= 9e15;
}
constexpr KeyMember batch = {
    .set = set_batch, .get = member<&Workload::global_batch_sequences>.get, .has_rules = true};

bool set_batch_tokens(Scenario& scenario, double value) {
  const double sequences = value / static_cast<double>(scenario.model.sequence_length);
  return sequences == std::floor(sequences) && set_batch(scenario, sequences);
}
constexpr KeyMember batch_tokens = {.set = set_batch_tokens, .has_rules = true};

constexpr Key kWorkloadKeys[] = {
    {"tokens", Kind::count, "", "", "number of training tokens, over all sites", "1.34e9",
     member<&Workload::tokens>, plan},
    {"global_batch_sequences", Values(Kind::count, 1e12), "", "global_batch_tokens is given",
     "number of sequences in an optimiser step, over all sites", "1024", batch, counts},
    {"global_batch_tokens", Kind::count, "", "global_batch_sequences is given",
     "number of tokens in an optimiser step, over all sites", "2097152", batch_tokens, counts},
    {"batch", Kind::choice, "\"equal\"", "",
     "parts of the batch: equal ones, or parts in proportion to the speed of each site's GPUs, so that steps "
     "take equally long everywhere",
     "\"balanced\"", one_of<"equal", "balanced">},
};

}  // namespace

std::vector<Key> workload_keys() { return keys_in("workload", kWorkloadKeys); }

}  // namespace fomoe::scenario
