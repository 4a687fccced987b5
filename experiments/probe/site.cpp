#include "experiments/probe/site.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "experiments/probe/external_program.hpp"
#include "experiments/probe/iperf3_json.hpp"

namespace fomoe::probe {

using nlohmann::json;

namespace {

constexpr double kStart_s = 5;  // seconds for iperf3 to start listening
constexpr double kGlance_s = 0.1;

/// The measurement was stopped by a request of rank 0, or because the probe ended.
class Stopped : public std::runtime_error {
 public:
  Stopped() : std::runtime_error("stopped") {}
};

/// A measurement that is running.
struct Task {
  std::atomic<bool> stop = false;
  std::atomic<bool> done = false;
  std::thread thread;

  /// Returns false when the time is over.
  bool wait_readable(const Descriptor& socket, double until_s) const {
    while (!stop) {
      if (readable(socket, std::min(until_s, now_s() + kGlance_s))) return true;
      if (now_s() >= until_s) return false;
    }
    throw Stopped();
  }
  std::optional<int> wait_for(ExternalProgram& child, double until_s) const {
    while (!stop && now_s() < until_s && !child.wait_for_end(std::min(until_s, now_s() + kGlance_s))) {
    }
    if (stop) throw Stopped();
    return child.wait(until_s);
  }
};

/// Sends every byte back until the other end closes the connection.
void echo(const Task& task, const Descriptor& listener, double until_s) {
  if (!task.wait_readable(listener, until_s)) return;
  const std::optional<Descriptor> connection = accept_from(listener, until_s);
  if (!connection) return;
  const int yes = 1;
  ::setsockopt(connection->get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  char byte = 0;
  while (task.wait_readable(*connection, until_s)) {
    if (::recv(connection->get(), &byte, 1, 0) != 1) return;
    if (::send(connection->get(), &byte, 1, MSG_NOSIGNAL) != 1) return;
  }
}

json ping(const json& asked, double until_s) {
  const Descriptor connection = connect_to(asked.at("host"), whole_number(asked, "port"), until_s);
  const int yes = 1;
  ::setsockopt(connection.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  std::vector<double> round_trips_s;
  const int count = whole_number(asked, "count");
  // The first round trip is a warm-up: routes are looked up, and sleeping processors wake.
  for (int i = 0; i <= count; ++i) {
    char byte = '?';
    const double begin_s = now_s();
    if (::send(connection.get(), &byte, 1, MSG_NOSIGNAL) != 1 || !readable(connection, until_s) ||
        ::recv(connection.get(), &byte, 1, MSG_DONTWAIT) != 1)
      throw ConnectionLost("a byte that was sent did not come back");
    if (i > 0) round_trips_s.push_back(now_s() - begin_s);
  }
  return {{"round_trips_s", round_trips_s}};
}

json send(const Task& task, const json& asked, double until_s) {
  ExternalProgram client(
      {"iperf3", "-c", asked.at("host"), "-p", std::to_string(whole_number(asked, "port")), "-P",
       std::to_string(whole_number(asked, "streams")), "-t", std::to_string(whole_number(asked, "seconds")),
       "-O", std::to_string(whole_number(asked, "omit")), "-i", "0", "--connect-timeout", "5000", "-J"});
  if (!task.wait_for(client, until_s)) throw Iperf3Error("the client did not end in time and was stopped");
  const Iperf3Transfer transfer = read_iperf3(client.output());
  return {{"bytes_per_s", transfer.bytes_per_s}};
}

/// The text at a key of a message; empty if there is none.
std::string text_of(const json& message, const char* key) {
  const auto found = message.find(key);
  return found != message.end() && found->is_string() ? found->get<std::string>() : "";
}

/// The whole number at a key of a message; -1 if there is none.
int number_of(const json& message, const char* key) {
  const auto found = message.find(key);
  return found != message.end() && found->is_number_integer() ? found->get<int>() : -1;
}

class Service {
 public:
  Service(LineSocket& rank0, int first_port) : rank0_(rank0), first_port_(first_port) {}

  ~Service() {
    for (auto& [id, task] : tasks_) task->stop = true;
    for (auto& [id, task] : tasks_) task->thread.join();
  }
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  std::string run() {
    for (;;) {
      const std::optional<json> line = rank0_.receive(now_s() + 1);
      forget_done();
      if (!line) continue;
      const std::string what = text_of(*line, "do");
      if (what == "end") return text_of(*line, "error");
      if (what == "stop") {
        if (const auto found = tasks_.find(number_of(*line, "of")); found != tasks_.end())
          found->second->stop = true;
        continue;
      }
      start(*line);
    }
  }

 private:
  void start(const json& asked) {
    const int id = number_of(asked, "id");
    if (tasks_.count(id)) throw ConnectionLost("sent two requests with the same id");
    Task& task = *tasks_.emplace(id, std::make_unique<Task>()).first->second;
    task.thread = std::thread([this, &task, asked, id] {
      try {
        work(task, asked, id);
      } catch (const Stopped&) {
        // Rank 0 does not wait for this answer.
      } catch (const Iperf3Error& error) {
        answer(id, {{"error", fmt::format("iperf3: {}", error.what())}});
      } catch (const std::exception& error) {
        answer(id, {{"error", error.what()}});
      }
      task.done = true;
    });
  }

  void work(const Task& task, const json& asked, int id) {
    const double until_s = now_s() + asked.at("limit_s").get<double>();
    const std::string what = asked.at("do");
    if (what == "echo") {
      const auto [listener, port] = free_listener();
      answer(id, {{"port", port}});
      echo(task, listener, until_s);
    } else if (what == "ping") {
      answer(id, ping(asked, until_s));
    } else if (what == "receive") {
      receive(task, id, until_s);
    } else if (what == "send") {
      answer(id, send(task, asked, until_s));
    } else {
      throw std::runtime_error(fmt::format("\"{}\" is not a known request", what));
    }
  }

  std::pair<Descriptor, int> free_listener() const {
    for (int port = first_port_; port < first_port_ + kPorts; ++port) {
      if (auto listener = listen_on(port)) return {std::move(*listener), port};
    }
    throw std::runtime_error(no_port());
  }

  /// Starts an iperf3 server that serves one test and ends.
  void receive(const Task& task, int id, double until_s) {
    for (int port = first_port_; port < first_port_ + kPorts; ++port) {
      ExternalProgram server({"iperf3", "-s", "-1", "-p", std::to_string(port), "--forceflush"});
      if (server.wait_for_output("Server listening", now_s() + kStart_s)) {
        answer(id, {{"port", port}});
        (void)task.wait_for(server, until_s);
        return;
      }
      if (server.output().find("in use") == std::string::npos)
        throw Iperf3Error(fmt::format("the server does not listen on port {}: {}", port, server.output()));
    }
    throw std::runtime_error(no_port());
  }

  std::string no_port() const {
    return fmt::format("all ports from {} to {} are in use; choose others with --port", first_port_,
                       first_port_ + kPorts - 1);
  }

  void answer(int id, json line) noexcept {
    const std::lock_guard lock(sending_);
    try {
      line["id"] = id;
      rank0_.send(line);
    } catch (const std::exception&) {
      // run() gets the same error.
    }
  }

  void forget_done() {
    std::erase_if(tasks_, [](auto& entry) {
      if (!entry.second->done) return false;
      entry.second->thread.join();
      return true;
    });
  }

  LineSocket& rank0_;
  int first_port_;
  std::mutex sending_;
  std::map<int, std::unique_ptr<Task>> tasks_;
};

}  // namespace

std::string iperf3_version() {
  if (program_on_path("iperf3").empty()) return {};
  ExternalProgram program({"iperf3", "--version"});
  (void)program.wait(now_s() + kStart_s);
  const std::string& text = program.output();  // "iperf 3.12 (cJSON 1.7.15)…"
  const std::size_t begin = text.find_first_of("0123456789");
  if (begin == std::string::npos) return "of unknown version";
  return text.substr(begin, text.find_first_of(" \n", begin) - begin);
}

std::string serve_site(LineSocket& rank0, int first_port) { return Service(rank0, first_port).run(); }

}  // namespace fomoe::probe
