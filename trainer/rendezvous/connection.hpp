// The store of a Rendezvous, for the files that implement it.
#pragma once
#include <chrono>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "trainer/rendezvous/rendezvous.hpp"

namespace fomoe::trainer {

struct Rendezvous::Connection {
  c10::intrusive_ptr<c10d::Store> store;
};

using Seconds = std::chrono::duration<double>;

inline std::vector<std::uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }
inline std::string text_of(const std::vector<std::uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

inline std::chrono::milliseconds milliseconds_of(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(1e3 * seconds));
}

}  // namespace fomoe::trainer
