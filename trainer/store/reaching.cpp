#include "trainer/store/reaching.hpp"

#include <cstring>
#include <torch/csrc/distributed/c10d/TCPStoreBackend.hpp>

#include "trainer/store/store_server.hpp"

namespace fomoe::trainer {
namespace {

using c10d::detail::QueryType;

std::string in_memory(const void* value, std::size_t bytes) {
  return {static_cast<const char*>(value), bytes};
}

std::string request(QueryType kind, std::uint32_t number) {
  return in_memory(&kind, sizeof kind) + in_memory(&number, sizeof number);
}

}  // namespace

// LibTorch's own client waits for minutes, whatever its time-out, if nobody answers what it says first. We
// therefore say the same first on a connection of our own: the number by which the store knows its clients,
// and a ping, to which it answers with the number that the ping had.
void ask_open_store(const std::string& address, int port, Deadline deadline) {
  constexpr std::uint32_t kNumber = 0x666f6d6f;
  const Descriptor socket = connect_to(address, port, deadline);
  std::string answer;
  try {
    write_bytes(
        socket.get(),
        request(QueryType::VALIDATE, c10d::detail::validationMagicNumber) + request(QueryType::PING, kNumber),
        deadline);
    answer = read_bytes(socket.get(), sizeof kNumber, deadline);
  } catch (const Silent&) {
    throw Silent("it accepts connections and says nothing");
  } catch (const ConnectionLost&) {
    throw Silent("it closes connections");
  }
  if (answer == in_memory(&kNumber, sizeof kNumber)) return;
  if (Channel::kGreeting.starts_with(answer)) throw NotAuthentic("it asks for a secret");
  throw Silent("it answers as another program");
}

}  // namespace fomoe::trainer
