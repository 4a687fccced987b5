// What fomoe-train reads from strangers: checkpoints, and the messages of the store that the sites of a run
// share.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <thread>

#include "platforms/support/atomic_file.hpp"
#include "platforms/support/whole_file.hpp"
#include "tests/fuzz/readers.hpp"
#include "trainer/execution/checkpoint_header.hpp"
#include "trainer/io/safetensors.hpp"
#include "trainer/store/channel.hpp"
#include "trainer/store/store_contents.hpp"

namespace fomoe::fuzz {

namespace {

using namespace trainer;

/// A bug that no sanitizer sees, since the program would go on.
void must(bool holds) {
  if (!holds) std::abort();
}

void read_checkpoint(const std::string& path) {
  const SafetensorsFile file = read_safetensors(path);
  must(file.metadata == read_safetensors_metadata(path));
  try {
    const CheckpointHeader header = checkpoint_header(file.metadata, path);
    must(to_metadata(checkpoint_header(to_metadata(header), path)) == to_metadata(header));
  } catch (const FileError&) {  // other safetensors files have other metadata
  }
  NamedTensors tensors;
  for (const auto& [name, tensor] : file.tensors) tensors.emplace_back(name, tensor);
  const std::string again = path + ".again";
  write_safetensors(again, tensors, file.metadata);
  must(read_safetensors(again).tensors.size() == file.tensors.size());
  ::unlink(again.c_str());
}

// The fuzzer seldom finds the length that the first 8 bytes must state: its bytes are the header here.
void read_checkpoint_header(const std::string& path) {
  const std::string header = whole_file(path).value();
  std::string length;
  for (int byte = 0; byte < 8; ++byte) length += static_cast<char>(header.size() >> (8 * byte));
  write_file(path, length + header + std::string(16, '\1'));
  read_checkpoint(path);
}

/// The bytes as messages: each begins with a byte that is its length.
template <typename Take>
void each_message(const std::string& bytes, Take take) {
  for (std::size_t at = 0; at < bytes.size();) {
    const auto length = static_cast<std::uint8_t>(bytes[at]);
    take(bytes.substr(at + 1, length));
    at += 1 + std::size_t{length};
  }
}

// What somebody can do who knows the secret. Only std::invalid_argument is documented. Nobody else sets the
// keys for which a request waits, so no request may wait here.
void ask_store(const std::string& bytes) {
  StoreContents contents;
  each_message(bytes, [&](const std::string& message) {
    try {
      StoreRequest request = request_from(message);
      must(request_from(to_text(request)).words == request.words);
      const bool waits = request.kind == StoreRequest::Kind::get || request.kind == StoreRequest::Kind::wait;
      if (waits) request.number = std::min<std::int64_t>(request.number, 0);
      const StoreAnswer answer = contents.answer(request);
      must(answer_from(to_text(answer)).value == answer.value);
    } catch (const std::invalid_argument&) {
    }
  });
}

void hear_answer(const std::string& bytes) {
  try {
    (void)answer_from(bytes);
  } catch (const std::invalid_argument&) {
  }
}

struct Ends {
  Descriptor own, other;
};

Ends connected() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw std::logic_error("socketpair");
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

void say(const Descriptor& socket, const std::string& bytes) {
  // The socket's buffer holds the bytes, of which the fuzzer makes at most 64 KiB.
  (void)!::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  ::shutdown(socket.get(), SHUT_WR);
}

const std::string& secret() {
  static const std::string text(40, 's');
  return text;
}

// The bytes of a stranger, who does not know the secret, to rank 0, and those of a stranger in the place of
// rank 0.
void greet(const std::string& bytes) {
  for (const auto& begin : {Channel::as_server, Channel::as_client}) {
    Ends ends = connected();
    say(ends.other, bytes);
    try {
      (void)begin(std::move(ends.own), secret(), seconds_from_now(60));
      std::abort();  // nobody guesses a code of 32 bytes
    } catch (const ConnectionLost&) {
    } catch (const NotAuthentic&) {
    }
  }
}

// After both ends have proved that they know the secret, somebody on the path sends these bytes in place of
// one of them.
void take_over(const std::string& bytes) {
  Ends ends = connected();
  const Descriptor path(::dup(ends.other.get()));
  std::thread client([&] {
    try {
      (void)Channel::as_client(std::move(ends.other), secret(), seconds_from_now(60));
    } catch (const std::exception&) {
    }
    say(path, bytes);
  });
  try {
    Channel server = Channel::as_server(std::move(ends.own), secret(), seconds_from_now(60));
    client.join();
    (void)server.receive(seconds_from_now(60));
    std::abort();  // nobody guesses a code of 32 bytes
  } catch (const ConnectionLost&) {
  } catch (const NotAuthentic&) {
  }
  if (client.joinable()) client.join();
}

constexpr Reader kReaders[] = {
    {"checkpoint", "node-0.safetensors", read_checkpoint, ""},
    {"checkpoint-head", "node-0.safetensors", read_checkpoint_header, ""},
    {"store-requests", nullptr, ask_store, ""},
    {"store-answer", nullptr, hear_answer, ""},
    {"store-greeting", nullptr, greet, ""},
    {"store-frames", nullptr, take_over, ""},
};

}  // namespace

std::span<const Reader> trainer_readers() { return kReaders; }

}  // namespace fomoe::fuzz
