#include "experiments/explore/server.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <csignal>
#include <list>
#include <map>
#include <memory>

#include "platforms/support/descriptor.hpp"

namespace fomoe::explore {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;

namespace {

constexpr auto kPatience = std::chrono::seconds(60);  // for a browser that is silent
constexpr std::uint64_t kMostBody = 1 << 20;
constexpr std::size_t kMostChildren = 8;
constexpr std::size_t kMostConnections = 64;
constexpr auto kPause = std::chrono::milliseconds(200);  // after a connection that could not be accepted

using Respond = std::function<void(const Reply&)>;
using Answers = std::function<Answer(const Request&)>;

/// A reply as text, for the pipe between a child and the server.
std::string packed(const Reply& reply) {
  return fmt::format("{}\n{}\n{}\n{}", reply.status, reply.type, reply.download, reply.body);
}

Reply unpacked(const std::string& text) {
  std::size_t begin = 0;
  const auto line = [&] {
    const std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) throw std::runtime_error("incomplete");
    std::string found = text.substr(begin, end - begin);
    begin = end + 1;
    return found;
  };
  Reply reply;
  reply.status = std::stoi(line());
  reply.type = line();
  reply.download = line();
  reply.body = text.substr(begin);
  return reply;
}

/// What a child process does. It leaves without the destructors of the server, whose sockets it must not
/// touch.
[[noreturn]] void work_in_child(const std::function<Reply()>& work, int output) {
  setpgid(0, 0);  // so that the simulator's own children can be ended together with this one
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  if (dup2(output, 3) != 3) _exit(1);
  close_range(4, ~0U, 0);  // the server's sockets
  int status = 1;
  try {
    const std::string text = packed(work());
    std::size_t written = 0;
    while (written < text.size()) {
      const ssize_t more = write(3, text.data() + written, text.size() - written);
      if (more <= 0) break;
      written += static_cast<std::size_t>(more);
    }
    status = written == text.size() ? 0 : 1;
  } catch (...) {  // the server answers that the work failed
  }
  _exit(status);
}

/// The child processes that compute answers.
class Children {
 public:
  explicit Children(asio::io_context& context) : context_(context) {}
  ~Children() {
    for (const auto& [pid, child] : running_) end(pid);
  }
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  void start(const Answer& answer, Respond respond) {
    const std::string& slot = answer.slot;
    for (const auto& [pid, child] : running_) {
      if (!slot.empty() && child->slot == slot) {
        child->superseded = true;
        kill(-pid, SIGKILL);
      }
    }
    int ends[2];
    if (running_.size() >= kMostChildren || pipe2(ends, O_CLOEXEC) != 0)
      return respond({503, "text/plain", "too many answers are being computed\n"});
    Descriptor reader(ends[0]), writer(ends[1]);
    const pid_t pid = fork();
    if (pid == 0) {
      reader.reset();
      work_in_child(answer.work, writer.get());
    }
    writer.reset();
    if (pid < 0) return respond({503, "text/plain", "no further process can be started\n"});
    setpgid(pid, pid);  // in both processes, since either may be first
    auto child = std::make_shared<Child>(context_, reader.release(), slot, std::move(respond));
    running_[pid] = child;
    child->timer.expires_after(answer.limit);
    child->timer.async_wait([pid, child, limit = answer.limit](beast::error_code stopped) {
      if (stopped || child->ended) return;
      child->over = fmt::format("this took more than {} s and was ended", limit.count());
      kill(-pid, SIGKILL);
    });
    asio::async_read(child->pipe, asio::dynamic_buffer(child->text),
                     [this, pid, child](beast::error_code, std::size_t) { finish(pid, *child); });
  }

 private:
  struct Child {
    Child(asio::io_context& context, int descriptor, std::string in_slot, Respond then)
        : pipe(context, descriptor), timer(context), slot(std::move(in_slot)), respond(std::move(then)) {}
    asio::posix::stream_descriptor pipe;
    asio::steady_timer timer;
    std::string slot, text;
    std::string over;  // why it was ended before it had answered; empty if it was not
    bool superseded = false, ended = false;
    Respond respond;
  };

  static int end(pid_t pid) {
    kill(-pid, SIGKILL);
    int status = 0;
    waitpid(pid, &status, 0);
    return status;
  }

  void finish(pid_t pid, Child& child) {
    running_.erase(pid);
    child.ended = true;
    child.timer.cancel();
    int status = 0;
    waitpid(pid, &status, 0);
    if (child.superseded) return child.respond({409, "text/plain", "a newer request replaced this one\n"});
    const auto mistake = [&](int number, const std::string& text) {
      child.respond({number, "application/json",
                     fmt::format(R"({{"mistakes": [{{"key": "", "text": "{}"}}]}})", text)});
    };
    if (!child.over.empty()) return mistake(422, child.over);
    Reply reply;
    try {
      reply = unpacked(child.text);
    } catch (const std::exception&) {
      return mistake(500, "the simulation ended unexpectedly");
    }
    child.respond(reply);
  }

  asio::io_context& context_;
  std::map<pid_t, std::shared_ptr<Child>> running_;
};

/// One connection of a browser, which may send several requests one after another.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(tcp::socket socket, const Answers& answers, Children& children)
      : stream_(std::move(socket)), answers_(answers), children_(children) {}

  /// Whether it waits for a request.
  [[nodiscard]] bool idle() const { return idle_; }
  void close() {
    beast::error_code ignored;
    stream_.socket().close(ignored);
  }

  void read() {
    idle_ = true;
    parser_.emplace();
    parser_->body_limit(kMostBody);
    stream_.expires_after(kPatience);
    http::async_read(stream_, buffer_, *parser_,
                     [self = shared_from_this()](beast::error_code error, std::size_t) {
                       self->idle_ = false;
                       if (!error) self->handle(self->parser_->release());
                     });
  }

 private:
  static std::string field(const http::request<http::string_body>& request, http::field name) {
    const auto text = request[name];
    return {text.data(), text.size()};
  }

  void handle(const http::request<http::string_body>& request) {
    const auto method = request.method_string();
    const auto target = request.target();
    const Answer answer = answers_({{method.data(), method.size()},
                                    {target.data(), target.size()},
                                    field(request, http::field::host),
                                    field(request, http::field::origin),
                                    request.body()});
    const bool keep = request.keep_alive();
    const auto respond = [self = shared_from_this(), keep](const Reply& reply) { self->write(reply, keep); };
    if (!answer.work) return respond(answer.now);
    stream_.expires_never();
    children_.start(answer, respond);
  }

  void write(const Reply& reply, bool keep) {
    response_ = {};
    response_.result(static_cast<unsigned>(reply.status));
    response_.set(http::field::content_type, reply.type);
    response_.set(http::field::cache_control, "no-store");
    response_.set("Referrer-Policy", "no-referrer");
    response_.set("X-Content-Type-Options", "nosniff");
    response_.set("X-Frame-Options", "DENY");
    response_.set("Cross-Origin-Resource-Policy", "same-origin");
    if (!reply.location.empty()) response_.set(http::field::location, reply.location);
    if (!reply.download.empty())
      response_.set(http::field::content_disposition, "attachment; filename=\"" + reply.download + '"');
    response_.body() = reply.body;
    response_.keep_alive(keep);
    response_.prepare_payload();
    stream_.expires_after(kPatience);
    http::async_write(stream_, response_,
                      [self = shared_from_this(), keep](beast::error_code error, std::size_t) {
                        if (!error && keep) return self->read();
                        beast::error_code ignored;
                        self->stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
                      });
  }

  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  http::response<http::string_body> response_;
  const Answers& answers_;
  Children& children_;
  bool idle_ = true;
};

}  // namespace

struct Server::State {
  asio::io_context context{1};
  tcp::acceptor acceptor{context};
  asio::signal_set signals{context};
  Children children{context};

  std::list<std::weak_ptr<Session>> sessions;  // the oldest first
  asio::steady_timer pause{context};

  /// Makes room for a connection: the one that has been silent for longest goes.
  bool make_room() {
    sessions.remove_if([](const std::weak_ptr<Session>& session) { return session.expired(); });
    if (sessions.size() < kMostConnections) return true;
    for (auto at = sessions.begin(); at != sessions.end(); ++at) {
      const std::shared_ptr<Session> session = at->lock();
      if (!session || !session->idle()) continue;
      session->close();
      sessions.erase(at);
      return true;
    }
    return false;
  }

  void accept(const Answers& answers) {
    acceptor.async_accept([this, &answers](beast::error_code error, tcp::socket socket) {
      if (error == asio::error::operation_aborted) return;
      if (!error && make_room()) {
        const auto session = std::make_shared<Session>(std::move(socket), answers, children);
        sessions.push_back(session);
        session->read();
      }
      if (!error) return accept(answers);
      // For example, all descriptors are in use: the connection goes on waiting, and so does the server.
      pause.expires_after(kPause);
      pause.async_wait([this, &answers](beast::error_code stopped) {
        if (!stopped) accept(answers);
      });
    });
  }
};

Server::Server(std::uint16_t port) : state_(std::make_unique<State>()) {
  const tcp::endpoint address(asio::ip::address_v4::loopback(), port);
  state_->acceptor.open(address.protocol());
  state_->acceptor.set_option(tcp::acceptor::reuse_address(true));
  beast::error_code error;
  state_->acceptor.bind(address, error);
  if (!error) state_->acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error)
    throw std::runtime_error(fmt::format(
        "--port: got {}, on which nothing can listen: {}; expected a free port; for example --port 0", port,
        error.message()));
}

Server::~Server() = default;

std::uint16_t Server::port() const { return state_->acceptor.local_endpoint().port(); }

void Server::run(const Answers& answers) {
  state_->signals.add(SIGINT);
  state_->signals.add(SIGTERM);
  state_->signals.async_wait([this](beast::error_code, int) { state_->context.stop(); });
  state_->accept(answers);
  state_->context.run();
}

}  // namespace fomoe::explore
