#include "experiments/probe/launch.hpp"

#include <fmt/format.h>

#include <cstdlib>

#include "platforms/support/input_error.hpp"
#include "platforms/support/parse_number.hpp"

namespace fomoe::probe {

namespace {

int variable_as_number(const std::string& name, const std::string& text, int least, int most) {
  const auto value = parse_number<int>(text);
  if (!value || *value < least || *value > most) {
    throw InputError(name, '"' + text + '"', fmt::format("a whole number from {} to {}", least, most),
                     fmt::format("{}={}", name, least));
  }
  return *value;
}

}  // namespace

std::optional<std::string> process_environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr || *value == 0) return std::nullopt;
  return value;
}

Launch read_launch(const Environment& environment) {
  const bool slurm = !environment("RANK") && environment("SLURM_PROCID");
  const auto need = [&](const std::string& name, const char* example) {
    if (const auto value = environment(name)) return *value;
    throw InputError(name, "nothing",
                     "this variable in the environment, as torchrun, srun and fomoe-wan run set it",
                     fmt::format("RANK=0 WORLD_SIZE=2 MASTER_ADDR=10.0.0.1 MASTER_PORT=29500 fomoe probe "
                                 "--output platform.toml ({}={})",
                                 name, example));
  };
  constexpr int kMostSites = 250;
  const std::string world_name = slurm ? "SLURM_NTASKS" : "WORLD_SIZE";
  const std::string rank_name = slurm ? "SLURM_PROCID" : "RANK";
  const std::string rank = need(rank_name, "0");
  Launch launch;
  launch.world = variable_as_number(world_name, need(world_name, "2"), 2, kMostSites);
  launch.rank = variable_as_number(rank_name, rank, 0, launch.world - 1);
  launch.master = need("MASTER_ADDR", "10.0.0.1");
  launch.port = variable_as_number("MASTER_PORT", need("MASTER_PORT", "29500"), 1, 65534);
  if (environment("TORCHELASTIC_USE_AGENT_STORE") == "True") ++launch.port;
  return launch;
}

}  // namespace fomoe::probe
