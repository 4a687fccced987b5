// Tests that the store with a secret answers as LibTorch's TCPStore, and that it survives strangers.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "tests/trainer/support.hpp"
#include "trainer/store/secret_store.hpp"
#include "trainer/store/store_server.hpp"

using namespace fomoe::trainer;
using std::chrono::milliseconds;

namespace {

int port_of_test(int which) { return 20'000 + (::getpid() * 7 + which) % 10'000; }

c10::intrusive_ptr<c10d::Store> with_secret(int port, bool server,
                                            const std::string& secret = std::string(40, 's')) {
  SecretStoreOptions options;
  options.address = "127.0.0.1";
  options.port = port;
  options.server = server;
  options.secret = secret;
  options.timeout = milliseconds(3000);
  return secret_store(options);
}

c10::intrusive_ptr<c10d::Store> of_libtorch(int port, bool server) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(port);
  options.isServer = server;
  options.waitWorkers = false;
  options.timeout = milliseconds(3000);
  return c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
}

/// Everything that a process of a run asks of its store, from two connections in turn.
std::string answers_of(c10d::Store& first, c10d::Store& second) {
  std::string said;
  const auto say = [&](const auto& value) { said += value + " "; };
  const auto bytes = [](const std::string& text) {
    return std::vector<std::uint8_t>(text.begin(), text.end());
  };
  first.set("name", bytes("north"));
  say(second.get_to_str("name"));
  second.set("name", bytes(std::string("a\0b", 3)));
  say(std::to_string(first.get("name").size()));
  say(std::to_string(first.add("count", 3)));
  say(std::to_string(second.add("count", -1)));
  say(std::to_string(second.add("none yet", 0)));
  say(second.get_to_str("count"));
  say(std::to_string(first.check({"name", "count"})));
  say(std::to_string(second.check({"name", "missing"})));
  say(std::string(second.compareSet("failure", "", "first")));
  say(std::string(first.compareSet("failure", "", "second")));
  say(std::string(first.compareSet("failure", "first", "third")));
  say(std::string(first.compareSet("absent", "expected", "value")));
  say(std::to_string(first.check({"absent"})));
  say(std::to_string(first.deleteKey("name")));
  say(std::to_string(second.deleteKey("name")));
  for (const auto limit : {milliseconds(1), milliseconds(50)}) {
    try {
      second.wait({"count", "missing"}, limit);
      say(std::string("found"));
    } catch (const std::exception&) {
      say(std::string("timeout"));
    }
  }
  auto waits = std::async(std::launch::async, [&] { second.wait({"count", "late"}, milliseconds(3000)); });
  std::this_thread::sleep_for(milliseconds(100));
  first.set("late", bytes(""));
  waits.get();
  say(std::to_string(second.get("late").size()));
  return said;
}

int connect_as_stranger(int port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  REQUIRE(::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  return socket;
}

}  // namespace

TEST_CASE("the store with a secret gives the answers of LibTorch's store") {
  const auto own = with_secret(port_of_test(0), true), far = with_secret(port_of_test(0), false);
  const auto torch_own = of_libtorch(port_of_test(1), true), torch_far = of_libtorch(port_of_test(1), false);
  const std::string expected = answers_of(*torch_own, *torch_far);
  CHECK(answers_of(*own, *far) == expected);
  CHECK(expected.find("north 3 3 2 0 2 ") == 0);
  CHECK(with_secret(port_of_test(0), false)->get_to_str("count") == "2");
  CHECK(far->clone()->get_to_str("failure") == "third");
}

TEST_CASE("a wrong secret, no secret and silence change nothing in the store and keep nobody out") {
  const int port = port_of_test(2);
  const auto own = with_secret(port, true);
  CHECK_THROWS_AS(with_secret(port, false, std::string(40, 't')), NotAuthentic);
  CHECK_THROWS(of_libtorch(port, false));
  std::vector<int> strangers;
  for (int stranger = 0; stranger < 200; ++stranger) strangers.push_back(connect_as_stranger(port));
  const auto begin = std::chrono::steady_clock::now();
  with_secret(port, false)->add("in", 1);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(3));
  CHECK(own->getNumKeys() == 1);
  for (const int stranger : strangers) ::close(stranger);
}

TEST_CASE("a process that is waiting learns at once that the store has gone") {
  const int port = port_of_test(3);
  auto own = with_secret(port, true);
  const auto far = with_secret(port, false);
  auto waits = std::async(std::launch::async, [&] {
    const auto begin = std::chrono::steady_clock::now();
    CHECK_THROWS(far->wait({"never"}, milliseconds(60'000)));
    return std::chrono::steady_clock::now() - begin;
  });
  std::this_thread::sleep_for(milliseconds(100));
  own.reset();
  CHECK(waits.get() < std::chrono::seconds(5));
  CHECK_THROWS(far->check({"anything"}));
}

TEST_CASE("requests and answers are read as they were written; others are refused") {
  StoreRequest request{StoreRequest::Kind::compare_set, {"key", "", std::string(300, '\xff')}, -7};
  const StoreRequest back = request_from(to_text(request));
  CHECK(back.kind == request.kind);
  CHECK((back.words == request.words));
  CHECK(back.number == -7);
  const StoreAnswer answer = answer_from(to_text(StoreAnswer{false, "value", 9}));
  CHECK_FALSE(answer.done);
  CHECK(answer.value == "value");
  CHECK(answer.number == 9);
  const std::string text = to_text(request);
  for (std::size_t length = 0; length < text.size(); ++length) {
    // A request may end after any of its words.
    if (length == 9 || length == 9 + 8 + 3 || length == 9 + 8 + 3 + 8) continue;
    CHECK_THROWS_AS(request_from(text.substr(0, length)), std::invalid_argument);
  }
  CHECK_THROWS_AS(request_from("\x63" + text.substr(1)), std::invalid_argument);
  StoreContents contents;
  CHECK_THROWS_AS(contents.answer({StoreRequest::Kind::set, {"key"}}), std::invalid_argument);
}
