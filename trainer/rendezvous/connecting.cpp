// Rendezvous: how a process reaches the store of rank 0.
#include <c10/util/Logging.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "experiments/text/human.hpp"
#include "platforms/support/input_error.hpp"
#include "trainer/comm/plain_reason.hpp"
#include "trainer/rendezvous/connection.hpp"
#include "trainer/rendezvous/waiting_notice.hpp"
#include "trainer/store/secret_store.hpp"

namespace fomoe::trainer {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

c10::intrusive_ptr<c10d::Store> open_store(const Launch& launch, bool serves, milliseconds timeout,
                                           const Patience& patience) {
  if (!launch.secret.empty()) {
    SecretStoreOptions options;
    options.address = launch.address;
    options.port = launch.port;
    options.server = serves;
    options.secret = launch.secret;
    options.timeout = timeout;
    options.patience = patience;
    return secret_store(options);
  }
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(launch.port);
  options.isServer = serves;
  options.numWorkers = launch.world;
  options.waitWorkers = false;  // agree() reports which ranks are missing
  options.timeout = timeout;
  return c10::make_intrusive<c10d::TCPStore>(launch.address, options);
}

}  // namespace

Rendezvous::Rendezvous(const Launch& launch, std::vector<std::string> names, double timeout_s,
                       std::optional<LostSites> lost)
    : launch_(launch),
      names_(std::move(names)),
      timeout_s_(timeout_s),
      lost_(std::move(lost)),
      members_(static_cast<std::size_t>(launch.world)),
      connection_(std::make_unique<Connection>()) {
  std::iota(members_.begin(), members_.end(), 0);
  // c10d would print stack traces of errors that we report in one line. Users can set the variable to see
  // them.
  ::setenv("TORCH_CPP_LOG_LEVEL", "FATAL", /*overwrite=*/0);
  c10::initLogging();
  const auto deadline = steady_clock::now() + milliseconds_of(timeout_s);
  while (true) {
    connect();
    const std::optional<bool> first = first_of_its_rank();
    if (first == true) return;
    if (!first && !lost_) throw store_lost();
    if (!lost_) {
      throw UsageError(
          "RANK: got " + std::to_string(launch_.rank) +
          ", which another process of this run has; expected a rank of its own for every process; "
          "for example RANK=" +
          std::to_string((launch_.rank + 1) % std::max(2, launch_.world)));
    }
    ask_to_start_anew();
    connection_->store.reset();
    if (steady_clock::now() > deadline)
      throw SiteLost(name_of(0) + " has not noticed within " + std::to_string(static_cast<int>(timeout_s_)) +
                     " s that a site was lost");
    std::this_thread::sleep_for(milliseconds(200));
  }
}

// The store lives as long as rank 0's process, so it remembers earlier processes of this rank. Empty: the
// store has just gone.
std::optional<bool> Rendezvous::first_of_its_rank() {
  try {
    return connection_->store->add("joined/" + std::to_string(launch_.rank), 1) == 1;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

double Rendezvous::start_limit_s() const {
  return launch_.start_timeout_s > 0 ? launch_.start_timeout_s : timeout_s_;
}

double Rendezvous::meeting_limit_s() const { return std::max(start_limit_s(), lost_ ? lost_->meeting_s : 0); }

Patience Rendezvous::patience() const {
  Patience patience{start_limit_s(), timeout_s_};
  patience.waiting = [this, notice = WaitingNotice()](const std::string& why, double limit_s) mutable {
    notice.waits(limit_s, [&] {
      return name_of(0) + " at " + launch_.address + ":" + std::to_string(launch_.port) + " (" + why + ")";
    });
  };
  return patience;
}

void Rendezvous::reach_open_store() const {
  reached(patience(), [&](Deadline deadline) { ask_open_store(launch_.address, launch_.port, deadline); });
}

void Rendezvous::connect() {
  const bool serves = launch_.rank == 0 && !launch_.agent_store;
  const std::string place = launch_.address + ":" + std::to_string(launch_.port);
  try {
    if (!serves && launch_.secret.empty()) reach_open_store();
    // torchrun keeps one store over restarts, so each attempt gets its own key prefix.
    const char* restarts = std::getenv("TORCHELASTIC_RESTART_COUNT");
    connection_->store = c10::make_intrusive<c10d::PrefixStore>(
        std::string("fomoe") + (restarts == nullptr ? "" : restarts),
        open_store(launch_, serves, milliseconds_of(timeout_s_), patience()));
  } catch (const NotAuthentic& error) {
    throw UsageError(
        "--secret-file: got " + std::string(launch_.secret.empty() ? "nothing" : "a secret") +
        " with which " + name_of(0) + " at " + place + " cannot be reached, because " + error.what() +
        "; expected the same secret at every site; for example --secret-file with a copy of rank 0's file");
  } catch (const Silent& error) {
    throw SiteLost(name_of(0) + " does not answer at " + place + " within " +
                   commands::human_time(timeout_s_) + ": " + error.what() +
                   "; another program may listen there (MASTER_ADDR, MASTER_PORT)");
  } catch (const std::exception& error) {
    const std::string reason = error.what();
    if (serves) {
      if (reason.find("EADDRINUSE") != std::string::npos || reason.find("in use") != std::string::npos) {
        throw UsageError("MASTER_PORT: got " + std::to_string(launch_.port) +
                         ", which is in use on this machine; expected a free port; for example MASTER_PORT=" +
                         std::to_string(launch_.port < 65'000 ? launch_.port + 1 : 29'500));
      }
      throw UsageError("MASTER_ADDR: got " + launch_.address + ", on which rank 0 cannot listen (" +
                       plain_reason(error) +
                       "); expected an address of rank 0's machine; for example MASTER_ADDR=10.0.0.1");
    }
    throw SiteLost(name_of(0) + " does not answer at " + place + " (" + plain_reason(error) + ")");
  }
}

}  // namespace fomoe::trainer
