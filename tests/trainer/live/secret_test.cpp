// Tests runs whose sites share a secret, and sites that do not know it.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include "tests/trainer/live/program.hpp"

using namespace fomoe::tests;

namespace {

std::string secret_in(const Folder& folder, const std::string& name, char letter) {
  const std::string path = folder / name;
  std::ofstream(path) << std::string(64, letter) << '\n';
  ::chmod(path.c_str(), 0600);
  return path;
}

const std::vector<std::string> kSettings = {"workload.tokens=65536", "platform.sites=2",
                                            "trainer.timeout=12s"};

Process site(int rank, int port, const std::string& stderr_path, const std::vector<std::string>& more) {
  std::vector<std::string> options = {"--start-timeout", "12s"};
  options.insert(options.end(), more.begin(), more.end());
  return Process(train(kSettings, options), stderr_path,
                 {{"RANK", std::to_string(rank)},
                  {"WORLD_SIZE", "2"},
                  {"MASTER_ADDR", "127.0.0.1"},
                  {"MASTER_PORT", std::to_string(port)}});
}

}  // namespace

TEST_CASE("sites that share a secret train to the same bits as without one") {
  const Folder folder;
  const std::string secret = secret_in(folder, "secret", 'a');
  REQUIRE(run(train(kSettings, {"--local", "--checkpoints", folder / "open"})).status == 0);
  const Ended ended =
      run(train(kSettings, {"--local", "--secret-file", secret, "--checkpoints", folder / "closed"}));
  CAPTURE(ended.said);
  REQUIRE(ended.status == 0);
  CHECK(state_after(folder / "closed", 1, 2) == state_after(folder / "open", 1, 2));
}

TEST_CASE("a site with another secret, or with none, is refused by itself and by rank 0, in bounded time") {
  const Folder folder;
  const std::string right = secret_in(folder, "right", 'a'), wrong = secret_in(folder, "wrong", 'b');
  int port = 20'000 + (::getpid() + 4231) % 10'000;
  for (const std::vector<std::string>& other : {std::vector<std::string>{"--secret-file", wrong}, {}}) {
    CAPTURE(other.size());
    Process first = site(0, port, folder / "0", {"--secret-file", right});
    Process second = site(1, port++, folder / "1", other);
    CHECK(second.wait(40) == 2);
    CHECK(first.wait(40) == 1);
    const std::string at_first = content(folder / "0"), at_second = content(folder / "1");
    CAPTURE(at_first);
    CAPTURE(at_second);
    CHECK(at_first.find("refused a connection from ") != std::string::npos);
    CHECK(at_first.find(other.empty()
                            ? "because it left without a proof that it knows the secret (--secret-file)"
                            : "because it does not know the secret (--secret-file)") != std::string::npos);
    CHECK(at_first.find("site-1 (rank 1) did not respond") != std::string::npos);
    CHECK(at_second.find(other.empty() ? "because it asks for a secret; expected the same secret"
                                       : "because it has refused the secret; expected the same secret") !=
          std::string::npos);
  }
}

TEST_CASE("a site with a secret does not join a run without one") {
  const Folder folder;
  const int port = 20'000 + (::getpid() + 4331) % 10'000;
  Process first = site(0, port, folder / "0", {});
  Process second = site(1, port, folder / "1", {"--secret-file", secret_in(folder, "secret", 'a')});
  CHECK(second.wait(40) == 2);
  CHECK(content(folder / "1").find("it was started without --secret-file") != std::string::npos);
  CHECK(first.wait(40) == 1);
}

TEST_CASE("a secret that cannot be read is said before any process is started") {
  const Ended ended = run(train(kSettings, {"--local", "--secret-file", "/nowhere/secret"}));
  CHECK(ended.status == 2);
  CHECK(ended.said.find("--secret-file: got /nowhere/secret, which cannot be read") != std::string::npos);
}
