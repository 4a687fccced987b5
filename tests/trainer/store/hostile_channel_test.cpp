// Tests that only who knows the secret of a run gets into its store, whatever others send.
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <string>

#include "tests/trainer/support.hpp"
#include "trainer/store/channel.hpp"
#include "trainer/store/secret.hpp"

using fomoe::Descriptor;
using namespace fomoe::trainer;

namespace {

const std::string kSecret(40, 's'), kOther(40, 't');

struct Ends {
  Descriptor server, client;
};

Ends connected() {
  int pair[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
  return {Descriptor(pair[0]), Descriptor(pair[1])};
}

void say(const Descriptor& socket, const std::string& text) {
  REQUIRE(::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL) == std::ssize(text));
}

std::string hear(const Descriptor& socket, std::size_t bytes) {
  std::string text(bytes, '\0');
  REQUIRE(::recv(socket.get(), text.data(), bytes, MSG_WAITALL) == static_cast<ssize_t>(bytes));
  return text;
}

/// What the server says of a client for which `talk` talks, and which then says nothing more.
std::string verdict_on(const std::function<void(const Descriptor&)>& talk, double limit_s = 10) {
  Ends ends = connected();
  auto server = std::async(std::launch::async, [&]() -> std::string {
    try {
      Channel channel = Channel::as_server(std::move(ends.server), kSecret, seconds_from_now(limit_s));
      return "heard " + channel.receive(seconds_from_now(limit_s));
    } catch (const std::exception& error) {
      return error.what();
    }
  });
  talk(ends.client);
  ::shutdown(ends.client.get(), SHUT_WR);
  return server.get();
}

std::string client_code(const std::string& secret, const std::string& nonces) {
  return std::string(text_of(hmac_sha256(secret, "client" + nonces)));
}

constexpr std::size_t kGreetingBytes = 8, kNonceBytes = 32;

/// Says the right answer to the greeting and returns it.
std::string prove(const Descriptor& socket) {
  const std::string nonce = hear(socket, kGreetingBytes + kNonceBytes).substr(kGreetingBytes),
                    own(kNonceBytes, 'c');
  const std::string answer = own + client_code(kSecret, nonce + own);
  say(socket, answer);
  return answer;
}

}  // namespace

TEST_CASE("who knows the secret is heard, both ways and message by message") {
  Ends ends = connected();
  auto server = std::async(std::launch::async, [&] {
    Channel channel = Channel::as_server(std::move(ends.server), kSecret, seconds_from_now(10));
    std::string heard;
    for (int message = 0; message < 3; ++message) heard += channel.receive(seconds_from_now(10)) + "|";
    channel.send(heard, seconds_from_now(10));
  });
  Channel channel = Channel::as_client(std::move(ends.client), kSecret, seconds_from_now(10));
  const std::string large(3'000'000, 'x');
  for (const std::string& message : {std::string("one"), std::string(), large})
    channel.send(message, seconds_from_now(10));
  CHECK(channel.receive(seconds_from_now(10)) == "one||" + large + "|");
  server.get();
}

TEST_CASE("a wrong secret is refused, and nothing that its owner says is used") {
  std::string at_client = "nothing";
  const std::string at_server = verdict_on([&](const Descriptor& socket) {
    try {
      Channel channel = Channel::as_client(Descriptor(::dup(socket.get())), kOther, seconds_from_now(10));
      channel.send("set me", seconds_from_now(10));
    } catch (const NotAuthentic& error) {
      at_client = error.what();
    }
  });
  CHECK(at_server == "it does not know the secret");
  CHECK(at_client == "it has refused the secret");
}

TEST_CASE("who knows no secret, and says something else, nothing, or half of an answer, is refused") {
  CHECK(verdict_on([](const Descriptor& socket) { say(socket, std::string(64, '\0')); }) ==
        "it does not know the secret");
  CHECK(verdict_on([](const Descriptor& socket) {
          const std::string greeting = hear(socket, kGreetingBytes + kNonceBytes);
          say(socket, greeting.substr(kGreetingBytes) + client_code("", greeting.substr(kGreetingBytes)));
        }) == "it does not know the secret");
  CHECK(verdict_on([](const Descriptor&) {}) == "the other end has closed the connection");
  CHECK(verdict_on([](const Descriptor& socket) { say(socket, std::string(40, 'x')); }) ==
        "the other end has closed the connection");
  const auto begin = std::chrono::steady_clock::now();
  CHECK(verdict_on(
            [](const Descriptor& socket) {
              say(socket, std::string(40, 'x'));  // and stays, silent
              (void)hear(socket, kGreetingBytes + kNonceBytes);
              char none = 0;
              (void)::recv(socket.get(), &none, 1, 0);  // until the server closes
            },
            /*limit_s=*/0.3) == "no answer in time");
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(5));
}

TEST_CASE("an answer that was overheard opens no second connection") {
  std::string overheard;
  CHECK(verdict_on([&](const Descriptor& socket) { overheard = prove(socket); }) ==
        "the other end has closed the connection");
  CHECK(verdict_on([&](const Descriptor& socket) { say(socket, overheard); }) ==
        "it does not know the secret");
}

TEST_CASE("the server's own answer, sent back to it, proves nothing") {
  // A stranger lets the server answer to itself: it needs the code of a client, and can only get that of a
  // server.
  CHECK(verdict_on([](const Descriptor& socket) {
          const std::string nonce = hear(socket, kGreetingBytes + kNonceBytes).substr(kGreetingBytes),
                            own(kNonceBytes, 'c');
          say(socket, own + std::string(text_of(hmac_sha256(kSecret, "server" + nonce + own))));
        }) == "it does not know the secret");
}

TEST_CASE("messages that were changed, repeated, cut off or are too long are not used") {
  const auto framed = [](const std::string& keys_of, const std::string& message, std::uint8_t number) {
    const std::string length = {'\0', '\0', '\0', static_cast<char>(message.size())};
    const Mac key = hmac_sha256(kSecret, "to server" + keys_of);
    const std::string counted = std::string(7, '\0') + static_cast<char>(number) + length + message;
    return length + message + std::string(text_of(hmac_sha256(text_of(key), counted)));
  };
  const auto begin = [&](const Descriptor& socket) {
    const std::string nonce = hear(socket, kGreetingBytes + kNonceBytes).substr(kGreetingBytes),
                      own(kNonceBytes, 'c');
    say(socket, own + client_code(kSecret, nonce + own));
    CHECK(hear(socket, 32) == text_of(hmac_sha256(kSecret, "server" + nonce + own)));
    return nonce + own;
  };
  CHECK(verdict_on([&](const Descriptor& socket) { say(socket, framed(begin(socket), "lr=1", 0)); }) ==
        "heard lr=1");
  CHECK(verdict_on([&](const Descriptor& socket) {
          std::string message = framed(begin(socket), "lr=1", 0);
          message[7] = '9';
          say(socket, message);
        }) == "somebody has changed a message");
  // The first message of the connection has the number 0.
  CHECK(verdict_on([&](const Descriptor& socket) { say(socket, framed(begin(socket), "lr=1", 1)); }) ==
        "somebody has changed a message");
  CHECK(verdict_on([&](const Descriptor& socket) {
          say(socket, framed(begin(socket), "lr=1", 0).substr(0, 20));
        }) == "the other end has closed the connection");
  CHECK(verdict_on([&](const Descriptor& socket) {
          (void)begin(socket);
          say(socket, "\xff\xff\xff\xff");
        }) == "a message is longer than any that a site sends");
}

TEST_CASE("a client trusts no server that cannot prove that it knows the secret") {
  Ends ends = connected();
  auto server = std::async(std::launch::async, [&] {
    say(ends.server, "fomoe-1\n" + std::string(kNonceBytes, 'n'));
    const std::string answer = hear(ends.server, kNonceBytes + 32);
    say(ends.server, answer.substr(kNonceBytes));  // the client's own code
  });
  CHECK_THROWS_AS(Channel::as_client(std::move(ends.client), kSecret, seconds_from_now(10)), NotAuthentic);
  server.get();
}
