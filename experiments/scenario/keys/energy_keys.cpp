// Keys of the power of GPUs.
#include "experiments/scenario/keys/members.hpp"

namespace fomoe::scenario {
namespace {

using costmodel::GpuPower;

bool one_power(const Scenario& scenario) { return scenario.site_compute.empty(); }

template <auto Field>
constexpr KeyMember power = member<Field, one_power>;

constexpr Key kEnergyKeys[] = {
    {"gpu_power", Kind::power, "", "the accelerator's board power", "power of the board of one busy GPU",
     "\"700W\"", power<&GpuPower::board_w>, values, "gpu_power_w"},
    {"idle_share", Kind::share, "", "", "share of gpu_power that an idle GPU draws", "0.2",
     power<&GpuPower::idle_share>, values},
    {"pue", Kind::factor, "1.0", "", "power usage effectiveness: power of the building ÷ power of the GPUs",
     "1.2", power<&GpuPower::pue>, values},
};

}  // namespace

std::vector<Key> energy_keys() { return keys_in("energy", kEnergyKeys); }

}  // namespace fomoe::scenario
