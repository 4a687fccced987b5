// Tests what a process reads from its environment before it meets the others.
#include "trainer/rendezvous/launch.hpp"

#include <cstdlib>
#include <string>

#include "platforms/support/input_error.hpp"
#include "tests/trainer/support.hpp"

using namespace fomoe::trainer;

namespace {

/// Sets a variable of the environment as long as the object exists.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Variable() { ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

}  // namespace

TEST_CASE("encryption that LibTorch's Gloo only pretends to do is refused") {
  const Variable rank("RANK", "1"), world("WORLD_SIZE", "2"), address("MASTER_ADDR", "10.0.0.1"),
      port("MASTER_PORT", "29500");
  CHECK(launch_from_environment()->rank == 1);
  {
    const Variable plain("GLOO_DEVICE_TRANSPORT", "TCP");
    CHECK(launch_from_environment()->rank == 1);
  }
  const Variable tls("GLOO_DEVICE_TRANSPORT", "TCP_TLS");
  std::string said;
  try {
    (void)launch_from_environment();
  } catch (const fomoe::UsageError& error) {
    said = error.what();
  }
  CHECK(said.find("GLOO_DEVICE_TRANSPORT: got \"TCP_TLS\"; expected TCP or nothing") == 0);
}
