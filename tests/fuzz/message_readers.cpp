#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <span>
#include <thread>

#include "experiments/probe/coordinator.hpp"
#include "experiments/probe/iperf3_json.hpp"
#include "experiments/probe/line_socket.hpp"
#include "experiments/probe/site.hpp"
#include "platforms/wan/relay/frame.hpp"
#include "tests/fuzz/readers.hpp"
#include "trainer/comm/digest.hpp"

namespace fomoe::fuzz {

namespace {

using Line = probe::LineSocket;

/// A connection over which the bytes arrive; the other end is then closed.
Line arriving(const std::string& bytes) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) throw std::logic_error("socketpair");
  // The socket's buffer holds the bytes, of which the fuzzer makes at most 64 KiB.
  (void)!::write(ends[0], bytes.data(), bytes.size());
  ::close(ends[0]);
  return Line(Descriptor(ends[1]));
}

void receive_lines(const std::string& bytes) {
  Line connection = arriving(bytes);
  try {
    while (connection.receive(probe::now_s() + 1)) {
    }
  } catch (const probe::ConnectionLost&) {
  }
}

// A site obeys rank 0: requests to measure would start iperf3 or connect to other machines, so that only
// texts without them are tried.
void serve(const std::string& bytes) {
  for (const char* word : {"ping", "send", "receive", "echo", "\\u"}) {
    if (bytes.find(word) != std::string::npos) return;
  }
  Line connection = arriving(bytes);
  try {
    (void)probe::serve_site(connection, 5201);
  } catch (const probe::ConnectionLost&) {
  }
}

// Rank 0 waits for two sites. The bytes are the first message of the second one.
void first_message(const std::string& bytes) {
  const auto listener = probe::listen_on(0);
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  ::getsockname(listener->get(), reinterpret_cast<sockaddr*>(&address), &length);
  const int client = ::socket(address.ss_family, SOCK_STREAM, 0);
  if (::connect(client, reinterpret_cast<const sockaddr*>(&address), length) != 0)
    throw std::logic_error("connect");
  (void)!::write(client, bytes.data(), bytes.size());
  ::shutdown(client, SHUT_WR);
  try {
    (void)probe::gather_sites(*listener, {0, 2, "one", "host", "127.0.0.1", "3.12"}, arriving(bytes),
                              probe::now_s() + 0.02);
  } catch (const std::runtime_error&) {  // documented: SiteLost and std::runtime_error
  }
  ::close(client);
}

void read_iperf3(const std::string& bytes) {
  try {
    (void)probe::read_iperf3(bytes);
  } catch (const probe::Iperf3Error&) {
  }
}

void read_frame(const std::string& bytes) {
  (void)platforms::wan::parse_frame(std::as_bytes(std::span(bytes)));
}

void read_digest(const std::string& bytes) {
  trainer::Digest digest;
  try {
    digest = trainer::digest_from_json(bytes);
  } catch (const std::exception&) {  // documented
    return;
  }
  (void)trainer::first_difference(digest, {{"model.layers", "2"}});
}

constexpr Reader kReaders[] = {
    {"probe-lines", nullptr, receive_lines, ""},
    {"probe-site", nullptr, serve, ""},
    {"probe-hello", nullptr, first_message, ""},
    {"probe-iperf3", nullptr, read_iperf3, "tests/experiments/data/iperf3/*.json"},
    {"relay-frame", nullptr, read_frame, ""},
    {"digest", nullptr, read_digest, ""},
};

}  // namespace

std::span<const Reader> message_readers() { return kReaders; }

}  // namespace fomoe::fuzz
