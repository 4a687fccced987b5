// Keys outside of any table.
#include "experiments/scenario/keys/members.hpp"

namespace fomoe::scenario {
namespace {

bool set_seed(Scenario& scenario, double value) {
  assign(scenario.seed, value);
  return !scenario.platform.name.ends_with(", generated");
}
constexpr KeyMember seed = {.set = set_seed};

constexpr Key kTopLevelKeys[] = {
    {"name", Kind::text, "", "no name", "title of the scenario", "\"four sites at 1 Gb/s\""},
    {"description", Kind::text, "", "no description", "purpose of the scenario", "\"my three data centres\""},
    {"seed", Values(Kind::count, 9e15, 0), "42", "", "seed of all random numbers, such as random placements",
     "7", seed, values},
};

}  // namespace

std::vector<Key> top_level_keys() { return keys_in("", kTopLevelKeys); }

}  // namespace fomoe::scenario
