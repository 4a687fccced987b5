// Tests runs whose sites have no files but their own (trainer.data_split = "domain").
#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/trainer/live/program.hpp"

using namespace fomoe::tests;
using nlohmann::json;

namespace {

/// Three domains, of which "a" is dealt to site-0, and "b" and "c" to site-1.
constexpr const char* kDomains[] = {"a", "b", "c"};

void write_domain(const std::string& folder, const std::string& domain) {
  fs::create_directories(folder + '/' + domain);
  std::vector<std::uint16_t> tokens(domain == "a" ? 40'000 : 15'000);
  for (std::size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = static_cast<std::uint16_t>((i * i + i * static_cast<std::size_t>(domain[0])) % 256);
  std::ofstream(folder + '/' + domain + "/0.bin", std::ios::binary)
      .write(reinterpret_cast<const char*>(tokens.data()),
             static_cast<std::streamsize>(tokens.size() * sizeof tokens.front()));
}

class OwnFiles {
 public:
  bool held_out = true;  // whether there are data for validation that all sites have
  OwnFiles() {
    for (const char* domain : kDomains) write_domain(folder_ / "all", domain);
    write_domain(folder_ / "first", "a");
    write_domain(folder_ / "second", "b");
    write_domain(folder_ / "second", "c");
    write_domain(folder_ / "held-out", "d");
  }
  [[nodiscard]] std::string at(const std::string& name) const { return folder_ / name; }
  [[nodiscard]] std::vector<std::string> command(const std::string& data, const std::string& name,
                                                 std::vector<std::string> more,
                                                 const std::vector<std::string>& settings = {}) const {
    std::vector<std::string> all = {
        "strategy.method=diloco",  "platform.sites=2",     "workload.global_batch_sequences=8",
        "strategy.local_steps=4",  "workload.tokens=8192", "trainer.data_split=domain",
        "trainer.data=" + at(data)};
    if (held_out) all.push_back("trainer.validation_data=" + at("held-out"));
    all.insert(all.end(), settings.begin(), settings.end());
    more.insert(more.end(), {"--checkpoints", at(name), "--output", at(name + ".json")});
    return train(all, more);
  }
  /// Two sites with these folders. Returns what both said, with the exit statuses.
  [[nodiscard]] std::vector<Ended> two_sites(const std::string& first, const std::string& second,
                                             const std::string& name) const {
    static int port = 21'000 + ::getpid() % 10'000;
    ++port;
    const auto started = [&](const std::string& data, const std::string& rank) {
      return Process(command(data, name, {}), at(name + ".stderr-" + rank),
                     {{"RANK", rank},
                      {"WORLD_SIZE", "2"},
                      {"MASTER_ADDR", "127.0.0.1"},
                      {"MASTER_PORT", std::to_string(port)}});
    };
    Process zero = started(first, "0"), one = started(second, "1");
    const int of_zero = zero.wait(), of_one = one.wait();
    return {{of_zero, content(at(name + ".stderr-0"))}, {of_one, content(at(name + ".stderr-1"))}};
  }

 private:
  Folder folder_;
};

}  // namespace

TEST_CASE("sites with their own files only train the bits of sites that have all files") {
  const OwnFiles files;
  const Ended whole = run(files.command("all", "everywhere", {"--local"}));
  CAPTURE(whole.said);
  REQUIRE(whole.status == 0);
  for (const Ended& site : files.two_sites("first", "second", "own")) {
    CAPTURE(site.said);
    REQUIRE(site.status == 0);
  }
  const auto validation = [&](const std::string& name) {
    return json::parse(content(files.at(name + ".json")))["validation"]["sites"];
  };
  CHECK(validation("own") == validation("everywhere"));
  CHECK(validation("own")[0]["loss"].get<double>() > 0);
  const auto state = [&](const std::string& name) {
    std::string all;
    for (const char* node : {"0", "1"})
      all += content(files.at(name) + "/round-00000004/node-" + node + ".safetensors");
    return all;
  };
  CHECK(!state("own").empty());
  CHECK(state("own") == state("everywhere"));
  // One process for all sites has all files, and goes on from the same checkpoints.
  const Ended more = run(files.command("all", "own", {"--in-turn", "--resume"}, {"workload.tokens=16384"}));
  CAPTURE(more.said);
  CHECK(more.status == 0);
  CHECK(more.said.find("resumed after round 4 of 8") != std::string::npos);
}

TEST_CASE("a site without its files, or with other ones, is named with the file, at all sites") {
  const OwnFiles files;
  write_domain(files.at("lacking"), "b");
  for (const Ended& site : files.two_sites("all", "lacking", "lacks")) {
    CAPTURE(site.said);
    CHECK(site.status == 2);
    CHECK(site.said.find("got no c/0.bin at site-1, which trainer.data_split = \"domain\" deals to it") !=
          std::string::npos);
    CHECK(site.said.find("for example a copy of that at site-0") != std::string::npos);
  }
  write_domain(files.at("other"), "b");
  write_domain(files.at("other"), "c");
  std::ofstream(files.at("other/c/0.bin"), std::ios::binary) << std::string(30'000, '\0');
  for (const Ended& site : files.two_sites("all", "other", "differs")) {
    CAPTURE(site.said);
    CHECK(site.status == 2);
    CHECK(site.said.find("got c/0.bin with 15000 tokens at site-0 and other 15000 tokens at site-1") !=
          std::string::npos);
  }
}

TEST_CASE("the ends of files that only some sites have cannot validate all of them") {
  OwnFiles files;
  files.held_out = false;
  for (const Ended& site : files.two_sites("first", "second", "ends")) {
    CAPTURE(site.said);
    CHECK(site.status == 2);
    CHECK(
        site.said.find("would be the validation data (site-0, site-1); expected data for validation that all "
                       "sites have") != std::string::npos);
  }
}
