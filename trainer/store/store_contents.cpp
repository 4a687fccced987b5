#include "trainer/store/store_contents.hpp"

#include <algorithm>
#include <stdexcept>
#include <string_view>

#include "platforms/support/parse_number.hpp"

namespace fomoe::trainer {
namespace {

using Kind = StoreRequest::Kind;

void put(std::string& text, std::uint64_t number) {
  for (int byte = 0; byte < 8; ++byte) text += static_cast<char>(number >> (8 * byte));
}

void put(std::string& text, const std::string& word) {
  put(text, word.size());
  text += word;
}

std::int64_t number_in(const std::string& text) {
  const auto number = parse_number<std::int64_t>(text);
  if (!number) throw std::invalid_argument("a value of the store is not a number");
  return *number;
}

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}
  std::uint64_t number() {
    std::uint64_t value = 0;
    for (int byte = 0; byte < 8; ++byte)
      value |= static_cast<std::uint64_t>(static_cast<std::uint8_t>(bytes(1).front())) << (8 * byte);
    return value;
  }
  std::string word() { return std::string(bytes(number())); }
  std::string_view bytes(std::uint64_t count) {
    if (count > text_.size()) throw std::invalid_argument("a message of the store is too short");
    const std::string_view piece = text_.substr(0, count);
    text_.remove_prefix(count);
    return piece;
  }
  [[nodiscard]] bool at_end() const { return text_.empty(); }

 private:
  std::string_view text_;
};

}  // namespace

std::string to_text(const StoreRequest& request) {
  std::string text(1, static_cast<char>(request.kind));
  put(text, static_cast<std::uint64_t>(request.number));
  for (const std::string& word : request.words) put(text, word);
  return text;
}

StoreRequest request_from(const std::string& text) {
  Reader reader(text);
  StoreRequest request;
  const auto kind = static_cast<std::uint8_t>(reader.bytes(1).front());
  if (kind > static_cast<std::uint8_t>(Kind::compare_set))
    throw std::invalid_argument("a message of the store has an unknown kind");
  request.kind = static_cast<Kind>(kind);
  request.number = static_cast<std::int64_t>(reader.number());
  while (!reader.at_end()) request.words.push_back(reader.word());
  return request;
}

std::string to_text(const StoreAnswer& answer) {
  std::string text(1, answer.done ? '\1' : '\0');
  put(text, static_cast<std::uint64_t>(answer.number));
  put(text, answer.value);
  return text;
}

StoreAnswer answer_from(const std::string& text) {
  Reader reader(text);
  StoreAnswer answer;
  answer.done = reader.bytes(1).front() != '\0';
  answer.number = static_cast<std::int64_t>(reader.number());
  answer.value = reader.word();
  return answer;
}

bool StoreContents::appear(std::unique_lock<std::mutex>& lock, const std::vector<std::string>& keys,
                           std::int64_t limit_ms) {
  const auto there = [&] {
    return std::all_of(keys.begin(), keys.end(),
                       [&](const std::string& key) { return values_.contains(key); });
  };
  constexpr std::int64_t kLongest_ms = 1000LL * 3600 * 24 * 365;  // more would overflow the clock
  changed_.wait_for(lock, std::chrono::milliseconds(std::clamp<std::int64_t>(limit_ms, 0, kLongest_ms)),
                    [&] { return closed_ || there(); });
  return there();
}

StoreAnswer StoreContents::answer(const StoreRequest& request) {
  const auto word = [&](std::size_t index) -> const std::string& {
    if (index >= request.words.size())
      throw std::invalid_argument("a request to the store has too few words");
    return request.words[index];
  };
  std::unique_lock lock(lock_);
  StoreAnswer answer;
  switch (request.kind) {
    case Kind::set:
      values_[word(0)] = word(1);
      break;
    case Kind::get:
      answer.done = appear(lock, {word(0)}, request.number);
      if (answer.done) answer.value = values_[word(0)];
      return answer;
    case Kind::add: {
      std::string& value = values_[word(0)];
      if (__builtin_add_overflow(value.empty() ? 0 : number_in(value), request.number, &answer.number))
        throw std::invalid_argument("a number of the store overflows");
      value = std::to_string(answer.number);
      break;
    }
    case Kind::erase:
      answer.number = static_cast<std::int64_t>(values_.erase(word(0)));
      return answer;
    case Kind::check:
      answer.number = appear(lock, request.words, 0) ? 1 : 0;
      return answer;
    case Kind::count:
      answer.number = static_cast<std::int64_t>(values_.size());
      return answer;
    case Kind::wait:
      answer.done = appear(lock, request.words, request.number);
      return answer;
    case Kind::compare_set: {
      const auto known = values_.find(word(0));
      if (known == values_.end() ? word(1).empty() : known->second == word(1)) {
        answer.value = values_[word(0)] = word(2);
      } else {
        answer.value = known == values_.end() ? word(1) : known->second;
      }
      break;
    }
  }
  changed_.notify_all();
  return answer;
}

void StoreContents::close() {
  const std::lock_guard lock(lock_);
  closed_ = true;
  changed_.notify_all();
}

}  // namespace fomoe::trainer
