// A hash that distinguishes data.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <sstream>
#include <string>

#include "trainer/torch.hpp"

namespace fomoe::trainer {

/// FNV-1a (Fowler, Noll, Vo), on words of 8 bytes. It is not a cryptographic hash. Data that are added in
/// pieces have the same hash as in one piece if the pieces have multiples of 8 bytes.
class Hash {
 public:
  void add(const void* data, std::size_t bytes) {
    const auto* from = static_cast<const char*>(data);
    for (std::size_t i = 0; i < bytes; i += sizeof(std::uint64_t)) {
      std::uint64_t word = 0;
      std::memcpy(&word, from + i, std::min(sizeof word, bytes - i));
      value_ = (value_ ^ word) * 0x100000001b3u;
      value_ ^= value_ >> 32;  // multiplication alone never moves high bits down
    }
  }
  void add(const at::Tensor& tensor) {
    const at::Tensor flat = tensor.detach().to(at::kCPU).contiguous();
    add(flat.const_data_ptr(), flat.nbytes());
  }
  [[nodiscard]] std::string text() const {
    std::ostringstream out;
    out << std::hex << value_;
    return out.str();
  }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325u;
};

}  // namespace fomoe::trainer
