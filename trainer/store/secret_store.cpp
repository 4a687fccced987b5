#include "trainer/store/secret_store.hpp"

#include <atomic>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "trainer/store/store_server.hpp"

namespace fomoe::trainer {
namespace {

using Kind = StoreRequest::Kind;
using Bytes = std::vector<std::uint8_t>;
using std::chrono::milliseconds;

std::string text_of(const Bytes& bytes) { return {bytes.begin(), bytes.end()}; }
Bytes bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

double seconds_of(milliseconds time) { return std::chrono::duration<double>(time).count(); }

void say_refused(const std::string& who, const std::string& why) {
  constexpr int kMostLines = 20;  // strangers must not fill the log
  static std::atomic<int> lines = 0;
  if (++lines > kMostLines) return;
  std::cerr << "fomoe-train: refused a connection from " + who + ", because " + why + " (--secret-file)\n"
            << std::flush;
}

Channel connect(const SecretStoreOptions& options) {
  Patience patience = options.patience;
  if (patience.start_s == 0) patience = {seconds_of(options.timeout), seconds_of(options.timeout)};
  bool silent = false;  // somebody listens there who does not greet, or did until it gave up
  try {
    return reached(patience, [&](Deadline deadline) {
      Descriptor socket = connect_to(options.address, options.port, deadline);
      try {
        return Channel::as_client(std::move(socket), options.secret, deadline);
      } catch (const Silent&) {
        silent = true;
        throw;
      }
    });
  } catch (const ConnectionLost&) {
    if (!silent) throw;
    throw NotAuthentic("it does not ask for a secret, so it was started without --secret-file");
  }
}

class SecretStore : public c10d::Store {
 public:
  explicit SecretStore(const SecretStoreOptions& options) : c10d::Store(options.timeout), options_(options) {
    if (options.server) {
      server_ = std::make_shared<StoreServer>(options.listen_on, options.port, options.secret, say_refused);
    } else {
      channel_.emplace(connect(options));
    }
    // A further connection finds rank 0 there, and whoever waited may have gone.
    options_.patience = {};
  }
  SecretStore(const SecretStoreOptions& options, std::shared_ptr<StoreServer> server)
      : c10d::Store(options.timeout), options_(options), server_(std::move(server)) {}

  c10::intrusive_ptr<c10d::Store> clone() override {
    if (server_) return c10::make_intrusive<SecretStore>(options_, server_);
    return c10::make_intrusive<SecretStore>(options_);
  }

  void set(const std::string& key, const Bytes& value) override {
    (void)ask({Kind::set, {key, text_of(value)}});
  }
  Bytes compareSet(const std::string& key, const Bytes& current, const Bytes& next) override {
    return bytes_of(ask({Kind::compare_set, {key, text_of(current), text_of(next)}}).value);
  }
  Bytes get(const std::string& key) override {
    const StoreAnswer answer = ask({Kind::get, {key}, timeout_.count()});
    if (!answer.done) throw std::runtime_error("the store has no key " + key);
    return bytes_of(answer.value);
  }
  std::int64_t add(const std::string& key, std::int64_t value) override {
    return ask({Kind::add, {key}, value}).number;
  }
  bool deleteKey(const std::string& key) override { return ask({Kind::erase, {key}}).number > 0; }
  bool check(const std::vector<std::string>& keys) override { return ask({Kind::check, keys}).number > 0; }
  std::int64_t getNumKeys() override { return ask({Kind::count}).number; }
  void wait(const std::vector<std::string>& keys) override { wait(keys, timeout_); }
  void wait(const std::vector<std::string>& keys, const milliseconds& timeout) override {
    if (!ask({Kind::wait, keys, timeout.count()}).done)
      throw std::runtime_error("the store does not have the keys in time");
  }

 private:
  StoreAnswer ask(const StoreRequest& request) {
    if (server_) return server_->contents().answer(request);
    const bool waits = request.kind == Kind::get || request.kind == Kind::wait;
    const double limit_s =
        seconds_of(options_.timeout) + (waits ? 1e-3 * static_cast<double>(request.number) : 0);
    const std::lock_guard lock(asking_);
    if (!channel_) throw ConnectionLost("the store is lost");
    try {
      channel_->send(to_text(request), seconds_from_now(limit_s));
      return answer_from(channel_->receive(seconds_from_now(limit_s)));
    } catch (const std::exception&) {
      channel_.reset();  // the answer may still come, and would be taken for that to the next request
      throw;
    }
  }

  SecretStoreOptions options_;
  std::shared_ptr<StoreServer> server_;  // at rank 0; clones share it
  std::mutex asking_;
  std::optional<Channel> channel_;  // elsewhere
};

}  // namespace

c10::intrusive_ptr<c10d::Store> secret_store(const SecretStoreOptions& options) {
  return c10::make_intrusive<SecretStore>(options);
}

}  // namespace fomoe::trainer
