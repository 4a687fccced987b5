#include "trainer/run/unseen.hpp"

#include <ostream>
#include <string>

#include "platforms/support/input_error.hpp"
#include "platforms/support/parse_number.hpp"
#include "trainer/run/agreement.hpp"

namespace fomoe::trainer {

namespace {

std::string entry(const Digest& digest, const char* name) {
  for (const auto& [key, value] : digest) {
    if (key == name) return value;
  }
  return "";
}

}  // namespace

void check_unseen(const WholeModel& whole, const RunData& data, std::int64_t sequences, std::ostream& out) {
  if (whole.trained_on.empty()) {
    out << "it is not known which data this model was trained on, so these sequences may be part of "
           "them\n";
    return;
  }
  const std::string trained_on = entry(whole.trained_on, kTrainingData);
  if (data.validation_corpus) {
    if (hash_of(*data.validation_corpus) == trained_on)
      throw UsageError(
          "trainer.validation_data: got the data on which the model was trained; expected other data; for "
          "example --set trainer.validation_data=other-tokens.bin");
    return;
  }
  // A training by domains lists its files.
  if (hash_of(data.corpus) != trained_on && hash_of(data.own_files()) != trained_on) return;
  const bool left_out = entry(whole.trained_on, kValidationData) == kEndOfData;
  const std::string kept = left_out ? entry(whole.trained_on, kValidationSequences) : "0";
  if (sequences <= parse_number<std::int64_t>(kept).value_or(0)) return;
  throw UsageError("trainer.validation_sequences: got " + std::to_string(sequences) +
                   ", although the training left out " + kept +
                   " sequences of these data; expected at most " + kept +
                   ", or other data; for example --set trainer.validation_data=other-tokens.bin");
}

}  // namespace fomoe::trainer
