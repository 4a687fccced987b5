// Tests `fomoe explore` as a running program: its address, refused requests, answers while a simulation runs,
// and its end.
#include "experiments/explore/server.hpp"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <list>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "tests/experiments/run_fomoe.hpp"

namespace {

using namespace fomoe::tests;
using nlohmann::json;

/// `fomoe explore` in the background; ended by the destructor.
class Explorer {
 public:
  explicit Explorer(const std::string& scenario, rlim_t descriptors = 0) {
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(ends[1], 1);
      dup2(open("/dev/null", O_WRONLY), 2);
      close(ends[0]);
      const rlimit limit{descriptors, descriptors};
      if (descriptors > 0) setrlimit(RLIMIT_NOFILE, &limit);
      execl(FOMOE_BINARY_DIR "/fomoe", "fomoe", "explore", scenario.c_str(), "--no-browser", nullptr);
      _exit(1);
    }
    close(ends[1]);
    for (char c = 0; read(ends[0], &c, 1) == 1 && c != '\n';) address_ += c;
    close(ends[0]);
  }
  ~Explorer() {
    if (pid_ > 0) end();
  }
  Explorer(const Explorer&) = delete;
  Explorer& operator=(const Explorer&) = delete;

  int end() {
    int status = 0;
    kill(pid_, SIGTERM);
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  /// Seconds of a CPU that it has used.
  [[nodiscard]] double cpu_s() const {
    const std::string text = read_all("/proc/" + std::to_string(pid_) + "/stat");
    std::istringstream fields(text.substr(text.rfind(')') + 2));
    std::string skipped;
    for (int i = 0; i < 11; ++i) fields >> skipped;
    double user = 0, system = 0;
    fields >> user >> system;
    return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
  }
  [[nodiscard]] const std::string& address() const { return address_; }
  [[nodiscard]] int port() const { return std::stoi(address_.substr(address_.rfind(':') + 1)); }
  [[nodiscard]] std::string authority() const { return "127.0.0.1:" + std::to_string(port()); }
  [[nodiscard]] std::string path() const { return address_.substr(address_.find('/', 7)); }

 private:
  pid_t pid_ = -1;
  std::string address_;
};

/// A connection, and the text of its reply.
class Connection {
 public:
  explicit Connection(int port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0);
  }
  ~Connection() { close(socket_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void send(const std::string& text) const {
    REQUIRE(::send(socket_, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
  }
  [[nodiscard]] std::string rest() const {
    std::string text;
    char part[4096];
    for (ssize_t got = 0; (got = recv(socket_, part, sizeof part, 0)) > 0;)
      text.append(part, static_cast<std::size_t>(got));
    return text;
  }

 private:
  int socket_;
};

std::string request(const std::string& line, const std::string& host, const std::string& body = "") {
  return line + " HTTP/1.1\r\nHost: " + host +
         "\r\nConnection: close\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

std::string replied(const Explorer& explorer, const std::string& text) {
  const Connection connection(explorer.port());
  connection.send(text);
  return connection.rest();
}

json body_of(const std::string& reply) { return json::parse(reply.substr(reply.find("\r\n\r\n") + 4)); }

const std::string kScenario = source_dir() + "/tests/ideal/two-sites.toml";

}  // namespace

TEST_CASE("the program serves the page on 127.0.0.1 to requests with its token, and ends on SIGTERM") {
  Explorer explorer(kScenario);
  REQUIRE(explorer.address().starts_with("http://127.0.0.1:"));
  REQUIRE(explorer.path().size() == 34);  // 128 bits in hexadecimal, between two slashes
  const std::string page = replied(explorer, request("GET " + explorer.path(), explorer.authority()));
  CHECK(page.starts_with("HTTP/1.1 200 "));
  CHECK(page.find("two sites, 1 Gb/s") != std::string::npos);
  CHECK(page.find("X-Frame-Options: DENY") != std::string::npos);
  CHECK(page.find("Access-Control") == std::string::npos);
  CHECK(replied(explorer, request("GET /", explorer.authority())).starts_with("HTTP/1.1 403 "));
  CHECK(replied(explorer, request("GET " + explorer.path(), "evil.example")).starts_with("HTTP/1.1 403 "));
  CHECK(replied(explorer, "nonsense\r\n\r\n").find("200") == std::string::npos);
  CHECK(Explorer(kScenario).path() != explorer.path());  // each start has another token

  const std::string body = R"({"settings": {"strategy.local_steps": "64"}, "page": "1"})";
  const json simulated =
      body_of(replied(explorer, request("POST " + explorer.path() + "simulate", explorer.authority(), body)));
  const Ran ran = run_in("/", "fomoe simulate " + kScenario + " --set strategy.local_steps=64 --output -");
  CHECK(simulated["report"]["wall_clock_s"] == json::parse(ran.out)["wall_clock_s"]);
  CHECK(explorer.end() == 0);
}

TEST_CASE(
    "a connection that sends nothing does not delay others, and a newer simulation replaces an older one") {
  const Explorer explorer(kScenario);
  const Connection silent(explorer.port());
  const auto post = [&](const std::string& name, const json& settings) {
    return request("POST " + explorer.path() + name, explorer.authority(),
                   json{{"settings", settings}, {"page", "1"}}.dump());
  };
  // Random placements of many experts on many sites take seconds to simulate.
  const Connection slow(explorer.port());
  slow.send(post("simulate", {{"platform.sites", "64"},
                              {"strategy.placement", "random"},
                              {"model.experts", "64"},
                              {"strategy.expert_overlap", "3"},
                              {"workload.tokens", "1e11"}}));
  const json quick = body_of(replied(explorer, post("formula", json::object())));
  CHECK(quick["local_steps"] == 16);
  const json newer = body_of(replied(explorer, post("simulate", json::object())));
  CHECK(newer["report"]["executor"] == "simulated");
  CHECK(slow.rest().starts_with("HTTP/1.1 409 "));
}

TEST_CASE("wrong options are explained") {
  const auto error = [](const std::string& options) { return run_in("/", "fomoe explore " + options).err; };
  CHECK(error(kScenario + " --port x").find("--port: got \"x\"; expected a whole number") !=
        std::string::npos);
  CHECK(error("-").find("expected a file") != std::string::npos);
  CHECK(error(kScenario + " --export page.txt").find(".html") != std::string::npos);
  CHECK(error(kScenario + " --set strategy.local_steps=0").find("strategy.local_steps: got 0") !=
        std::string::npos);
  const Explorer explorer(kScenario);
  CHECK(error(kScenario + " --no-browser --port " + std::to_string(explorer.port())).find("--port: got") !=
        std::string::npos);
}

TEST_CASE("work that never ends is ended at its limit, and does not delay other answers or the end") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t pid = fork();
  if (pid == 0) {
    fomoe::explore::Server server(0);
    const std::uint16_t port = server.port();
    if (write(ends[1], &port, sizeof port) != sizeof port) _exit(1);
    server.run([](const fomoe::explore::Request& request) {
      fomoe::explore::Answer answer{{200, "text/plain", "quick\n"}};
      if (request.target == "/quick") return answer;
      answer.work = []() -> fomoe::explore::Reply {
        for (;;) pause();
      };
      answer.limit = std::chrono::seconds(request.target == "/slow" ? 1 : 1000);
      return answer;
    });
    _exit(0);
  }
  std::uint16_t port = 0;
  REQUIRE(read(ends[0], &port, sizeof port) == sizeof port);
  const Connection slow(port), endless(port), quick(port);
  slow.send(request("GET /slow", "x"));
  endless.send(request("GET /endless", "x"));
  quick.send(request("GET /quick", "x"));
  CHECK(quick.rest().find("quick") != std::string::npos);
  const std::string reply = slow.rest();
  CHECK(reply.starts_with("HTTP/1.1 422 "));
  CHECK(body_of(reply)["mistakes"][0]["text"] == "this took more than 1 s and was ended");
  int status = 0;
  kill(pid, SIGINT);
  CHECK(waitpid(pid, &status, 0) == pid);
  CHECK(WIFEXITED(status));
  close(ends[0]);
  close(ends[1]);
}

TEST_CASE("without free descriptors the server waits, and with many silent connections it answers") {
  Explorer explorer(kScenario, 20);
  {
    std::list<Connection> many;
    for (int i = 0; i < 30; ++i) many.emplace_back(explorer.port());
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    const double before_s = explorer.cpu_s();
    std::this_thread::sleep_for(std::chrono::seconds(1));
    CHECK(explorer.cpu_s() - before_s < 0.3);
  }
  CHECK(replied(explorer, request("GET " + explorer.path(), explorer.authority()))
            .starts_with("HTTP/1.1 200 "));
  Explorer other(kScenario);
  std::list<Connection> silent;
  for (int i = 0; i < 100; ++i) silent.emplace_back(other.port());
  CHECK(replied(other, request("GET " + other.path(), other.authority())).starts_with("HTTP/1.1 200 "));
  CHECK(silent.front().rest().empty());  // closed, since it was silent for longest
}
