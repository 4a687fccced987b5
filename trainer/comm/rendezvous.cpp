#include "trainer/comm/rendezvous.hpp"

#include <arpa/inet.h>
#include <c10/util/Logging.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "platforms/support/input_error.hpp"
#include "trainer/comm/rank_transports.hpp"

namespace fomoe::trainer {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

std::optional<std::string> environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

int whole_number(const char* name, const std::string& text, int least, int most) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) {
    throw UsageError(std::string(name) + ": got \"" + text + "\"; expected a whole number from " +
                     std::to_string(least) + " to " + std::to_string(most) + "; for example " + name + "=" +
                     std::to_string(least));
  }
  return value;
}

constexpr const char* kAnew = "start anew";   // key of the request that all ranks start anew
constexpr std::size_t kPieceBytes = 1 << 20;  // the store takes values of up to 8 MiB

std::vector<std::uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }
std::string text_of(const std::vector<std::uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

milliseconds milliseconds_of(double seconds) {
  return milliseconds(static_cast<std::int64_t>(1e3 * seconds));
}

// This machine's address as rank 0 sees it: the source address of a packet to rank 0. With it, neither a
// container nor a network namespace needs a configured host name or interface.
std::string own_address(const Launch& launch) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_DGRAM;
  if (::getaddrinfo(launch.address.c_str(), std::to_string(launch.port).c_str(), &hints, &found) != 0)
    return "127.0.0.1";
  std::string address = "127.0.0.1";
  const int probe = ::socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_storage own{};
  socklen_t length = sizeof own;
  if (probe >= 0 && ::connect(probe, found->ai_addr, found->ai_addrlen) == 0 &&
      ::getsockname(probe, reinterpret_cast<sockaddr*>(&own), &length) == 0) {
    char text[NI_MAXHOST];
    if (::getnameinfo(reinterpret_cast<sockaddr*>(&own), length, text, sizeof text, nullptr, 0,
                      NI_NUMERICHOST) == 0) {
      address = text;
    }
  }
  if (probe >= 0) ::close(probe);
  ::freeaddrinfo(found);
  return address;
}

}  // namespace

std::optional<Launch> launch_from_environment() {
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

struct Rendezvous::Connection {
  c10::intrusive_ptr<c10d::Store> store;
};

std::string Rendezvous::name_of(int rank) const {
  return names_.at(static_cast<std::size_t>(rank)) + " (rank " + std::to_string(rank) + ")";
}

Rendezvous::Rendezvous(const Launch& launch, std::vector<std::string> names, double timeout_s,
                       std::optional<double> meeting_s)
    : launch_(launch),
      names_(std::move(names)),
      timeout_s_(timeout_s),
      meeting_s_(meeting_s),
      connection_(std::make_unique<Connection>()) {
  // c10d would print stack traces of errors that we report in one line. Users can set the variable to see
  // them.
  ::setenv("TORCH_CPP_LOG_LEVEL", "ERROR", /*overwrite=*/0);
  c10::initLogging();
  const auto deadline = steady_clock::now() + milliseconds_of(timeout_s);
  while (true) {
    connect();
    const std::optional<bool> first = first_of_its_rank();
    if (first == true) return;
    if (!first && !meeting_s) throw store_lost();
    if (!meeting_s) {
      throw UsageError(
          "RANK: got " + std::to_string(launch_.rank) +
          ", which another process of this run has; expected a rank of its own for every process; "
          "for example RANK=" +
          std::to_string((launch_.rank + 1) % std::max(2, launch_.world)));
    }
    try {
      connection_->store->set(kAnew, bytes_of(""));
    } catch (const std::exception&) {  // the store has just gone, which is what this rank waits for
    }
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

void Rendezvous::connect() {
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(launch_.port);
  options.isServer = launch_.rank == 0 && !launch_.agent_store;
  options.numWorkers = launch_.world;
  options.waitWorkers = false;  // agree() reports which ranks are missing
  options.timeout = milliseconds_of(timeout_s_);
  try {
    // torchrun keeps one store over restarts, so each attempt gets its own key prefix.
    connection_->store = c10::make_intrusive<c10d::PrefixStore>(
        "fomoe" + environment("TORCHELASTIC_RESTART_COUNT").value_or(""),
        c10::make_intrusive<c10d::TCPStore>(launch_.address, options));
  } catch (const std::exception& error) {
    const std::string reason = error.what();
    if (options.isServer) {
      if (reason.find("EADDRINUSE") != std::string::npos || reason.find("in use") != std::string::npos) {
        throw UsageError("MASTER_PORT: got " + std::to_string(launch_.port) +
                         ", which is in use on this machine; expected a free port; for example MASTER_PORT=" +
                         std::to_string(launch_.port < 65'000 ? launch_.port + 1 : 29'500));
      }
      throw UsageError("MASTER_ADDR: got " + launch_.address + ", on which rank 0 cannot listen (" +
                       reason.substr(0, reason.find('\n')) +
                       "); expected an address of rank 0's machine; for example MASTER_ADDR=10.0.0.1");
    }
    throw SiteLost(name_of(0) + " does not answer at " + launch_.address + ":" +
                   std::to_string(launch_.port));
  }
}

Rendezvous::~Rendezvous() = default;

SiteLost Rendezvous::store_lost() const {
  return SiteLost(name_of(0) + " is lost; it hosted the store through which the sites find each other");
}

std::vector<std::string> Rendezvous::gather(const std::string& key, const std::string& text) {
  return exchange_texts(key, text, /*all_read=*/true, timeout_s_);
}

std::vector<std::string> Rendezvous::collect(const std::string& key, const std::string& text) {
  return exchange_texts(key, text, /*all_read=*/false, timeout_s_);
}

// A text is stored in pieces, since the store limits the size of a value. The value at the rank's own key is
// the number of pieces; it is written last.
std::vector<std::string> Rendezvous::exchange_texts(const std::string& key, const std::string& text,
                                                    bool all_read, double timeout_s) {
  std::vector<std::string> keys, texts;
  for (int rank = 0; rank < launch_.world; ++rank) keys.push_back(key + "/" + std::to_string(rank));
  const auto piece_key = [](const std::string& own, std::size_t piece) {
    return own + "/" + std::to_string(piece);
  };
  const auto deadline = steady_clock::now() + milliseconds_of(timeout_s);
  const std::string& own = keys[static_cast<std::size_t>(launch_.rank)];
  try {
    std::size_t pieces = 0;
    for (std::size_t begin = 0; begin < text.size(); begin += kPieceBytes)
      connection_->store->set(piece_key(own, pieces++), bytes_of(text.substr(begin, kPieceBytes)));
    connection_->store->set(own, bytes_of(std::to_string(pieces)));
  } catch (const std::exception&) {
    throw store_lost();
  }
  const bool reads = all_read || launch_.rank == 0;
  if (reads) wait_for(keys, timeout_s);
  try {
    for (std::size_t rank = 0; reads && rank < keys.size(); ++rank) {
      const std::size_t pieces = std::stoul(text_of(connection_->store->get(keys[rank])));
      std::string& whole = texts.emplace_back();
      for (std::size_t piece = 0; piece < pieces; ++piece) {
        const std::string at = piece_key(keys[rank], piece);
        whole += text_of(connection_->store->get(at));
        if (!all_read) connection_->store->deleteKey(at);
      }
    }
    // Rank 0 serves the store, so it leaves last.
    if (launch_.rank > 0) connection_->store->add(key + "/done", 1);
    while (launch_.rank == 0 && connection_->store->add(key + "/done", 0) < launch_.world - 1 &&
           steady_clock::now() < deadline) {
      std::this_thread::sleep_for(milliseconds(2));
    }
  } catch (const std::exception&) {
    throw store_lost();
  }
  return texts;
}

// Waits in short turns, between which it looks for a request to start anew.
void Rendezvous::wait_for(const std::vector<std::string>& keys, double timeout_s) {
  const auto deadline = steady_clock::now() + milliseconds_of(timeout_s);
  while (true) {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now());
    try {
      connection_->store->wait(keys, std::clamp(left, milliseconds(1), milliseconds(1000)));
      return;
    } catch (const std::exception&) {
      if (steady_clock::now() >= deadline) throw missing_of(keys, timeout_s);
    }
    bool anew = false;
    try {
      anew = connection_->store->check({kAnew});
    } catch (const std::exception&) {
      throw store_lost();
    }
    if (anew) throw SiteLost("a site was lost and has been started again");
  }
}

SiteLost Rendezvous::missing_of(const std::vector<std::string>& keys, double timeout_s) {
  std::string missing;
  for (int rank = 0; rank < launch_.world; ++rank) {
    bool there = false;
    try {
      there = connection_->store->check({keys[static_cast<std::size_t>(rank)]});
    } catch (const std::exception&) {
      return store_lost();
    }
    if (!there) missing += (missing.empty() ? "" : ", ") + name_of(rank);
  }
  if (missing.empty()) missing = "at least one site";  // the ranks arrived after the timeout
  return SiteLost(missing + " did not respond within " + std::to_string(static_cast<int>(timeout_s)) + " s");
}

void Rendezvous::measure_round_trips() {
  constexpr int kTries = 5;  // the shortest one counts: it met the least other traffic
  round_trip_s_ = timeout_s_;
  try {
    for (int tried = 0; tried < kTries; ++tried) {
      const auto asked = steady_clock::now();
      (void)connection_->store->check({"anything"});
      round_trip_s_ = std::min(round_trip_s_, Seconds(steady_clock::now() - asked).count());
    }
  } catch (const std::exception&) {
    throw store_lost();
  }
  for (const std::string& text : gather("round trip", std::to_string(round_trip_s_)))
    longest_round_trip_s_ = std::max(longest_round_trip_s_, std::stod(text));
}

void Rendezvous::start_together() {
  constexpr double kMargin_s = 0.1;  // seconds between two requests on a busy machine
  gather("ready", "");
  try {
    if (launch_.rank == 0) {
      // The other ranks must first learn that all are ready and then wait for "go".
      std::this_thread::sleep_for(Seconds(longest_round_trip_s_ + kMargin_s));
      connection_->store->set("go", bytes_of(""));
    } else {
      connection_->store->wait({"go"}, milliseconds_of(timeout_s_));
    }
  } catch (const std::exception&) {
    throw store_lost();
  }
  std::this_thread::sleep_for(Seconds((longest_round_trip_s_ - round_trip_s_) / 2));
}

void Rendezvous::agree(const Digest& digest) {
  const std::vector<std::string> texts = exchange_texts("agree", to_json(digest), /*all_read=*/true,
                                                        std::max(timeout_s_, meeting_s_.value_or(0)));
  for (int rank = 1; rank < launch_.world; ++rank) {
    const auto what =
        first_difference(digest_from_json(texts[0]), digest_from_json(texts[static_cast<std::size_t>(rank)]));
    if (!what) continue;
    throw UsageError(name_of(rank) + " differs from rank 0 in " + *what +
                     "; every site needs the same scenario, overrides, seed, data and version");
  }
  measure_round_trips();
}

std::unique_ptr<Transport> Rendezvous::transport(const std::vector<costmodel::Node>& nodes,
                                                 const at::Device& device, const std::string& kind) {
  const std::vector<std::string> devices = gather("device", device_identity(device));
  RankTransportOptions options;
  options.nodes = nodes;
  options.names = names_;
  options.rank = launch_.rank;
  options.timeout_s = timeout_s_;
  options.device = device;
  const bool possible = own_gpu_each(devices);
  if (kind == "nccl" && !possible) {
    throw UsageError(
        "trainer.transport: got nccl, but not every site has a GPU of its own; expected gloo or auto; for "
        "example --set trainer.transport=gloo");
  }
  try {
    if (possible && kind != "gloo") {
      options.store = c10::make_intrusive<c10d::PrefixStore>("nccl", connection_->store);
      return nccl_transport(options);
    }
    options.store = c10::make_intrusive<c10d::PrefixStore>("gloo", connection_->store);
    return gloo_transport(options, own_address(launch_));
  } catch (const std::exception& error) {
    const std::string reason = error.what();
    throw SiteLost("the sites cannot connect to each other: " + reason.substr(0, reason.find('\n')));
  }
}

std::string Rendezvous::first_failure(const std::string& own) {
  try {
    // The first rank that fails writes the reason, and the others read it. With an empty expected value,
    // compareSet writes only if the key does not exist.
    const std::string first = text_of(connection_->store->compareSet("failure", {}, bytes_of(own)));
    // Rank 0 keeps the store open a little longer, for ranks that have yet to ask.
    if (launch_.rank == 0 && !launch_.agent_store) std::this_thread::sleep_for(std::chrono::seconds(2));
    return first;
  } catch (const std::exception&) {
    return store_lost().what();
  }
}

}  // namespace fomoe::trainer
