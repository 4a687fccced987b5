// Keys of the quality of trained models.
#include "experiments/scenario/keys/members.hpp"

namespace fomoe::scenario {
namespace {

bool set_equal_loss_factor(Scenario& scenario, double value) {
  scenario.quality = costmodel::AssumedPenalty{value};
  return true;
}
constexpr KeyMember equal_loss_factor = {.set = set_equal_loss_factor, .has_rules = true};

constexpr Key kQualityKeys[] = {
    {"model", Kind::choice, "", "no quality in the answer, unless file is given",
     "model of the loss: \"paper-table\" and \"diloco-scaling-law\" predict perplexity, \"published\" "
     "predicts the "
     "loss above data-parallel training from published runs",
     "\"published\"", one_of<"published", "paper-table", "diloco-scaling-law">},
    {"mixtures", Kind::choice, "\"dense-rows\"", "",
     "with model = \"published\", whose rows are of dense models: whether those of the same active "
     "parameters "
     "answer for a mixture of experts, with a note",
     "\"refuse\"", one_of<"dense-rows", "refuse">},
    {"file", Kind::text, "", "model is used, or the answer contains no quality",
     "your own table of measured perplexities, relative to this file", "\"../data/paper_exp1.csv\""},
    {"interpolate", Kind::boolean, "false", "",
     "whether values between a table's measured K and O_e are interpolated, in log K and O_e; the answer "
     "marks them",
     "true"},
    {"equal_loss_factor", Kind::factor, "", "from the model, or unknown",
     "assumed factor on time and cost until a method that does not synchronise in each step reaches the loss "
     "of data-parallel training",
     "1.1", equal_loss_factor, values},
};

}  // namespace

std::vector<Key> quality_keys() { return keys_in("quality", kQualityKeys); }

}  // namespace fomoe::scenario
