// The secret that the sites of a run share, and the message authentication codes that are made with it.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace fomoe::trainer {

/// Reads `file`, the value of --secret-file, without the white space at its end. Throws UsageError if it
/// cannot be read, if it is too short to resist guessing, or if other users of the machine can read it.
std::string read_secret(const std::string& file);

using Mac = std::array<std::uint8_t, 32>;

/// HMAC-SHA256 (RFC 2104, RFC 6234) of the text.
Mac hmac_sha256(std::string_view key, std::string_view text);
/// Takes the same time wherever the codes differ, so that nobody can find a code byte by byte.
bool equal(std::string_view code, std::string_view other);
/// 32 bytes that nobody can predict.
std::string random_nonce();

inline std::string_view text_of(const Mac& mac) {
  return {reinterpret_cast<const char*>(mac.data()), mac.size()};
}

}  // namespace fomoe::trainer
