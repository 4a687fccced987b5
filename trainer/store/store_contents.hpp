// The keys and values of a run's store, and the requests that processes make of them, as texts.
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace fomoe::trainer {

/// What a process asks of the store. The meanings are those of c10d::TCPStore.
struct StoreRequest {
  enum class Kind : std::uint8_t { set, get, add, erase, check, count, wait, compare_set };
  Kind kind = Kind::count;
  std::vector<std::string> words = {};  // keys; then values
  std::int64_t number = 0;              // add: the summand; get and wait: milliseconds to wait for the keys
};

struct StoreAnswer {
  bool done = true;  // false: a key did not appear in time, or the store has closed
  std::string value = {};
  std::int64_t number = 0;
};

/// The texts in which requests and answers travel. The functions that read them throw std::invalid_argument.
std::string to_text(const StoreRequest& request);
std::string to_text(const StoreAnswer& answer);
StoreRequest request_from(const std::string& text);
StoreAnswer answer_from(const std::string& text);

class StoreContents {
 public:
  /// Several threads may call it at once. Throws std::invalid_argument for a request with too few words.
  StoreAnswer answer(const StoreRequest& request);
  /// Ends every wait.
  void close();

 private:
  bool appear(std::unique_lock<std::mutex>& lock, const std::vector<std::string>& keys,
              std::int64_t limit_ms);

  std::mutex lock_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
  bool closed_ = false;
};

}  // namespace fomoe::trainer
