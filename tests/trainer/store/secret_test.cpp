// Tests the secret of a run: its codes against published values, and its file.
#include "trainer/store/secret.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "platforms/support/input_error.hpp"
#include "tests/trainer/support.hpp"

using namespace fomoe::trainer;

namespace {

std::string hexadecimal(const Mac& mac) {
  std::string text;
  for (const std::uint8_t byte : mac) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

std::string refusal(const std::string& file) {
  try {
    (void)read_secret(file);
  } catch (const fomoe::UsageError& error) {
    return error.what();
  }
  return "nothing";
}

}  // namespace

TEST_CASE("HMAC-SHA256 has the values of RFC 4231, test cases 1, 2 and 6") {
  CHECK(hexadecimal(hmac_sha256(std::string(20, '\x0b'), "Hi There")) ==
        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  CHECK(hexadecimal(hmac_sha256("Jefe", "what do ya want for nothing?")) ==
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  CHECK(hexadecimal(hmac_sha256(std::string(131, '\xaa'),
                                "Test Using Larger Than Block-Size Key - Hash Key First")) ==
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST_CASE("codes are equal only if every byte and the length are") {
  CHECK(equal("abcd", "abcd"));
  CHECK_FALSE(equal("abcd", "abce"));
  CHECK_FALSE(equal("abcd", "bbcd"));
  CHECK_FALSE(equal("abcd", "abc"));
  CHECK_FALSE(equal("abcd", ""));
  CHECK(random_nonce().size() == 32);
  CHECK(random_nonce() != random_nonce());
}

TEST_CASE("a secret that is missing, short or readable by others is refused, with how to make one") {
  const auto folder = std::filesystem::temp_directory_path() / ("fomoe-secret-" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  const std::string file = (folder / "run.secret").string(), secret(64, 'a');
  const auto write = [&](const std::string& text, mode_t mode) {
    std::ofstream(file) << text;
    ::chmod(file.c_str(), mode);
  };
  write(secret + "\n", 0600);
  CHECK(read_secret(file) == secret);
  write(secret, 0640);
  CHECK(refusal(file).find("other users of this machine may open") != std::string::npos);
  write("short\n", 0600);
  CHECK(refusal(file).find("which contains 5 characters; expected at least 32") != std::string::npos);
  CHECK(refusal(folder.string()).find("which is no file") != std::string::npos);
  const std::string missing = refusal(file + "-2");
  CHECK(missing.find("--secret-file: got " + file + "-2, which cannot be read") == 0);
  CHECK(missing.find("; for example openssl rand -hex 32 > run.secret") != std::string::npos);
  std::filesystem::remove(file);
  std::filesystem::remove(folder);
}
