#include "trainer/store/secret.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <stdexcept>

#include "platforms/support/input_error.hpp"
#include "platforms/support/whole_file.hpp"

namespace fomoe::trainer {
namespace {

constexpr std::size_t kLeastBytes = 32;
constexpr const char* kHowToMake = "; for example openssl rand -hex 32 > run.secret && chmod 600 run.secret";

[[noreturn]] void refuse(const std::string& file, const std::string& got, const std::string& expected) {
  throw UsageError("--secret-file: got " + file + ", " + got + "; expected " + expected + kHowToMake);
}

}  // namespace

std::string read_secret(const std::string& file) {
  struct stat about {};
  if (::stat(file.c_str(), &about) != 0)
    refuse(file, std::string("which cannot be read (") + std::strerror(errno) + ")",
           "a file that contains the secret of the run");
  if (!S_ISREG(about.st_mode)) refuse(file, "which is no file", "a file that contains the secret of the run");
  if ((about.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    refuse(file, "which other users of this machine may open", "a file that only its owner may open");
  const std::optional<std::string> content = whole_file(file);
  if (!content) refuse(file, "which cannot be read", "a file that this user may read");
  std::string secret = *content;
  secret.erase(secret.find_last_not_of(" \t\r\n") + 1);
  if (secret.size() < kLeastBytes)
    refuse(file, "which contains " + std::to_string(secret.size()) + " characters",
           "at least " + std::to_string(kLeastBytes) +
               " characters drawn at random, so that nobody can guess them");
  return secret;
}

Mac hmac_sha256(std::string_view key, std::string_view text) {
  Mac code{};
  unsigned length = 0;
  if (::HMAC(::EVP_sha256(), key.data(), static_cast<int>(key.size()),
             reinterpret_cast<const unsigned char*>(text.data()), text.size(), code.data(),
             &length) == nullptr ||
      length != code.size()) {
    throw std::runtime_error("OpenSSL cannot compute HMAC-SHA256");
  }
  return code;
}

bool equal(std::string_view code, std::string_view other) {
  return code.size() == other.size() && ::CRYPTO_memcmp(code.data(), other.data(), code.size()) == 0;
}

std::string random_nonce() {
  std::string nonce(32, '\0');
  if (::RAND_bytes(reinterpret_cast<unsigned char*>(nonce.data()), static_cast<int>(nonce.size())) != 1)
    throw std::runtime_error("OpenSSL has no random numbers");
  return nonce;
}

}  // namespace fomoe::trainer
