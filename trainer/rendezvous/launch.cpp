#include "trainer/rendezvous/launch.hpp"

#include <cstdlib>

#include "platforms/support/input_error.hpp"
#include "platforms/support/parse_number.hpp"

namespace fomoe::trainer {
namespace {

std::optional<std::string> environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

int whole_number(const char* name, const std::string& text, int least, int most) {
  const auto value = parse_number<int>(text);
  if (!value || *value < least || *value > most) {
    throw UsageError(std::string(name) + ": got \"" + text + "\"; expected a whole number from " +
                     std::to_string(least) + " to " + std::to_string(most) + "; for example " + name + "=" +
                     std::to_string(least));
  }
  return *value;
}

// Whoever sets this variable to TCP_TLS expects encryption, but LibTorch 2.11 then sends everything in the
// clear, without an error: Gloo's TLS overrides Context::createPair(int), while LibTorch calls
// createPair(int, bool).
void refuse_tls_of_gloo() {
  const auto device = environment("GLOO_DEVICE_TRANSPORT");
  if (!device || *device == "TCP") return;
  throw UsageError(
      "GLOO_DEVICE_TRANSPORT: got \"" + *device +
      "\"; expected TCP or nothing, since LibTorch's Gloo encrypts nothing even with TCP_TLS; for "
      "example unset GLOO_DEVICE_TRANSPORT, and a VPN (trainer/SITES.md, Networks)");
}

}  // namespace

std::optional<Launch> launch_from_environment() {
  refuse_tls_of_gloo();
  const char* rank_name = environment("RANK") ? "RANK" : "SLURM_PROCID";
  const char* world_name = environment("RANK") ? "WORLD_SIZE" : "SLURM_NTASKS";
  const auto rank = environment(rank_name), world = environment(world_name);
  if (!rank) return std::nullopt;
  const auto need = [](const char* name, const std::optional<std::string>& value, const char* example) {
    if (!value) {
      throw UsageError(std::string(name) +
                       ": got nothing; expected this environment variable to be set together with the rank, "
                       "as torchrun does; for example " +
                       name + "=" + example);
    }
    return *value;
  };
  Launch launch;
  launch.world = whole_number(world_name, need(world_name, world, "2"), 1, 100'000);
  launch.rank = whole_number(rank_name, *rank, 0, launch.world - 1);
  const char* local_name = environment("RANK") ? "LOCAL_RANK" : "SLURM_LOCALID";
  launch.local_rank = launch.rank;
  if (const auto local = environment(local_name))
    launch.local_rank = whole_number(local_name, *local, 0, launch.world - 1);
  if (launch.world == 1 && !environment("MASTER_ADDR")) return std::nullopt;
  launch.address = need("MASTER_ADDR", environment("MASTER_ADDR"), "10.0.0.1");
  launch.port =
      whole_number("MASTER_PORT", need("MASTER_PORT", environment("MASTER_PORT"), "29500"), 1, 65535);
  launch.agent_store = environment("TORCHELASTIC_USE_AGENT_STORE") == "True";
  return launch;
}

}  // namespace fomoe::trainer
