// Tests what is left of the messages of LibTorch and Gloo.
#include "trainer/comm/plain_reason.hpp"

#include <stdexcept>

#include "tests/trainer/support.hpp"

using fomoe::trainer::plain_reason;

TEST_CASE("places in the sources of Gloo and LibTorch are left out, and addresses are kept") {
  const auto plain = [](const char* text) { return plain_reason(std::runtime_error(text)); };
  CHECK(plain("[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:547] Connection closed by peer "
              "[10.0.0.1]:4321\nException raised from x at a.cpp:7") ==
        "Connection closed by peer [10.0.0.1]:4321");
  CHECK(plain("[../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:133] Timed out waiting 5000ms for "
              "send") == "Timed out waiting 5000ms for send");
  CHECK(plain("NCCL error in: /src/ProcessGroupNCCL.cpp:12, remote process exited") ==
        "NCCL error in: , remote process exited");
  CHECK(plain("no place: 3:4") == "no place: 3:4");
  CHECK(plain("[a.cc:1]") == "no reason was given");
}
