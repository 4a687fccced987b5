// Tests of `fomoe sweep` through the program: every row equals the report of `fomoe simulate` for that
// combination.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "experiments/sweep/journal.hpp"
#include "tests/experiments/run_fomoe.hpp"

namespace {

using namespace fomoe::tests;
using nlohmann::json;

const std::string kScenario = source_dir() + "/tests/ideal/two-sites.toml";

Ran sweep(const std::string& options) {
  return run_in(source_dir(), "fomoe sweep " + kScenario + ' ' + options);
}

std::vector<std::string> rows_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string csv(const std::string& options) {
  const Folder folder;
  const Ran ran = sweep(options + " --output " + (folder / "s.csv"));
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
  CHECK(ran.out.empty());
  return read_all(folder / "s.csv");
}

json rows(const std::string& options) {
  const Ran ran = sweep(options + " --output -");
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
  return json::parse(ran.out)["rows"];
}

}  // namespace

TEST_CASE("each row is the report of `fomoe simulate` with the same --set, for both engines") {
  const std::string varied =
      "--set platform.sites=4 --vary strategy.method=fomoe,diloco,ddp --vary strategy.expert_overlap=1,2 "
      "--vary platform.bandwidth=100Mbps,1Gbps --vary strategy.local_steps=8,40 --vary "
      "platform.latency=0ms,25ms";
  for (const std::string engine : {"closed-form", "simulated"}) {
    const json all = rows(varied + " --engine " + engine + " --jobs 2");
    REQUIRE(all.size() == 3 * 2 * 2 * 2 * 2);
    for (const std::size_t index : {0, 5, 22, 33, 47}) {
      const json& row = all[index];
      CAPTURE(row.dump());
      const auto number = [&](const char* key) { return row[key].dump(); };
      const Ran single = run_in(
          source_dir(),
          "fomoe simulate " + kScenario + " --output - --engine " + engine +
              " --set platform.sites=4 --set strategy.method=" + row["strategy.method"].get<std::string>() +
              " --set strategy.expert_overlap=" + number("strategy.expert_overlap") +
              " --set platform.bandwidth=" + number("platform.bandwidth_bytes_per_s") +
              "Bps --set strategy.local_steps=" + number("strategy.local_steps") +
              " --set platform.latency=" + number("platform.latency_s") + "s");
      REQUIRE_MESSAGE(single.exit_status == 0, single.err);
      const json report = json::parse(single.out);
      for (const char* key : {"wall_clock_s", "compute_utilization", "tokens_per_s", "bytes_per_token",
                              "bytes_sent_per_site_per_round", "optimizer_steps", "tokens"}) {
        CAPTURE(key);
        CHECK(row[key].get<double>() == doctest::Approx(report[key].get<double>()).epsilon(1e-12));
      }
      CHECK(row["round_count"] == report["round"]["count"]);
      CHECK(row["memory_bytes_per_site"].get<double>() ==
            doctest::Approx(report["sites"][0]["memory_bytes"].get<double>()).epsilon(1e-12));
      CHECK(row["limited_by"] == report["bottleneck"]["limited_by"]);
    }
  }
}

TEST_CASE("the last --vary changes fastest, units are in the column names, and numbers are in SI") {
  const auto lines =
      rows_of(csv("--engine closed-form --vary strategy.placement=random,fixed --vary "
                  "platform.bandwidth=1Gbps,8Mbps --vary compute.step_time=100ms"));
  REQUIRE(lines.size() == 5);
  CHECK(lines[0].starts_with(
      "executor,strategy.placement,platform.bandwidth_bytes_per_s,compute.step_time_s,wall_clock_s,"));
  CHECK(lines[1].starts_with("closed-form,random,125000000,0.1,"));
  CHECK(lines[2].starts_with("closed-form,random,1000000,0.1,"));
  CHECK(lines[3].starts_with("closed-form,fixed,125000000,0.1,"));
  CHECK(lines[4].starts_with("closed-form,fixed,1000000,0.1,"));
}

TEST_CASE(
    "ranges: + adds, * multiplies, n/decade gives n values per factor of ten, and both ends are included") {
  const auto values = [](const std::string& range) {
    std::vector<double> list;
    const std::size_t equals = range.find('=');
    for (const json& row : rows("--engine closed-form --vary '" + range + "'"))
      for (const auto& [key, value] : row.items())
        if (key.starts_with(range.substr(0, equals))) list.push_back(value.get<double>());
    return list;
  };
  CHECK(values("strategy.local_steps=1..10+3") == std::vector<double>{1, 4, 7, 10});
  CHECK(values("strategy.local_steps=1..20*2") == std::vector<double>{1, 2, 4, 8, 16});
  CHECK(values("strategy.local_steps=1..10*4/decade,64") == std::vector<double>{1, 2, 3, 6, 10, 64});
  CHECK(values("platform.latency=0ms..50ms+25ms") == std::vector<double>{0, 0.025, 0.05});
  const auto rates = values("platform.bandwidth=1Gbps..100Gbps*1/decade");
  CHECK(rates == std::vector<double>{125e6, 1.25e9, 12.5e9});
}

TEST_CASE("cost and energy are numbers if the scenario has prices and power, and else empty cells") {
  const std::string priced = " --set prices.gpu_hour=2USD";
  for (const char* engine : {"--engine closed-form", "--engine simulated"}) {
    for (const std::string& prices : {std::string(), priced}) {
      const auto lines = rows_of(csv(std::string(engine) + " --vary platform.bandwidth=1Gbps" + prices));
      const auto cells = [&](std::size_t line) {
        std::vector<std::string> split(1);
        for (const char c : lines[line]) c == ',' ? split.emplace_back() : (split.back() += c, split.back());
        return split;
      };
      const auto names = cells(0), values = cells(1);
      const auto value = [&](const std::string& name) {
        return values[static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin())];
      };
      CHECK(value("energy_kwh").empty());
      REQUIRE(value("cost_total").empty() == prices.empty());
      if (prices.empty()) continue;
      const double hours = std::stod(value("wall_clock_s")) / 3600;
      CHECK(std::stod(value("cost_total")) == doctest::Approx(2 * 2 * hours));  // two sites with one GPU each
    }
  }
}

TEST_CASE("concatenated shards are the whole sweep, and the same command gives the same bytes") {
  const std::string varied =
      "--set platform.sites=4 --vary strategy.method=fomoe,ddp --vary strategy.expert_overlap=1,2,3,4 --vary "
      "strategy.local_steps=1..30+1 --vary platform.bandwidth=1Gbps..9Gbps+1Gbps";
  for (const std::string engine : {" --engine closed-form", " --set model.layers=1"}) {
    const bool simulated = engine.find("closed") == std::string::npos;
    const std::string options =
        (simulated ? "--set platform.sites=2 --vary strategy.local_steps=5,95 --vary "
                     "strategy.expert_overlap=1,2,3 --vary platform.bandwidth=1Gbps,2Gbps"
                   : varied) +
        engine;
    const std::string whole = csv(options);
    CHECK(csv(options + " --jobs 3") == whole);
    auto expected = rows_of(whole);
    std::vector<std::string> joined;
    for (const char* shard : {"1/3", "2/3", "3/3"}) {
      auto part = rows_of(csv(options + " --shard " + shard));
      CHECK(part.front() == expected.front());
      joined.insert(joined.end(), part.begin() + 1, part.end());
    }
    expected.erase(expected.begin());
    CHECK(joined == expected);  // also in the same order
  }
}

TEST_CASE(
    "an impossible combination keeps its row with the reason; if all are impossible the sweep is refused") {
  const auto all = rows("--engine closed-form --vary platform.sites=2,4 --vary strategy.expert_overlap=1,4");
  REQUIRE(all.size() == 4);
  CHECK(all[0].contains("wall_clock_s"));
  CHECK_FALSE(all[1].contains("wall_clock_s"));
  CHECK(all[1]["problem"].get<std::string>().starts_with("strategy.expert_overlap: got 4; expected 1 to 2"));
  CHECK(all[3].contains("wall_clock_s"));
  const auto simulated =
      rows("--engine simulated --vary platform.sites=2,4 --vary strategy.expert_overlap=1,4");
  for (std::size_t i = 0; i < 4; ++i) CHECK(simulated[i].contains("problem") == all[i].contains("problem"));
  CHECK(simulated[1] == all[1]);

  const Folder folder;
  const Ran none = sweep("--vary strategy.expert_overlap=3,5 --output " + (folder / "n.csv"));
  CHECK(none.exit_status == 2);
  CHECK(none.err.find("no combination is possible") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(folder / "n.csv"));
  CHECK(std::filesystem::is_empty(folder.path()));  // and no temporary file
}

TEST_CASE("O_e follows the number of sites if it is not given") {
  const Folder folder;
  std::string text = read_all(kScenario);
  text.erase(text.find("expert_overlap"),
             text.find('\n', text.find("expert_overlap")) - text.find("expert_overlap"));
  write_all(folder / "s.toml", text);
  const Ran ran =
      run_in(folder.path(), "fomoe sweep s.toml --engine closed-form --vary platform.sites=2,8 --output -");
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
  const json all = json::parse(ran.out)["rows"];
  // With all experts at every site, M does not change the memory of a site.
  CHECK(all[0]["memory_bytes_per_site"] == all[1]["memory_bytes_per_site"]);
}

TEST_CASE("keys of a table inside of another table can be varied and unset") {
  const std::string top_k =
      " --set strategy.method=diloco --set strategy.compression.kind=top_k --set "
      "strategy.compression.kept_share=";
  for (const std::string engine : {"closed-form", "simulated"}) {
    const std::string options = " --set strategy.expert_overlap=2 --engine " + engine;
    const json all = rows("--vary strategy.compression.kept_share=0.01,0.1" + top_k + "0.5" + options);
    REQUIRE(all.size() == 2);
    for (const json& row : all) {
      const Ran single = run_in(source_dir(), "fomoe simulate " + kScenario + " --output -" + top_k +
                                                  row["strategy.compression.kept_share"].dump() + options);
      REQUIRE_MESSAGE(single.exit_status == 0, single.err);
      CHECK(row["wall_clock_s"].get<double>() ==
            doctest::Approx(json::parse(single.out)["wall_clock_s"].get<double>()).epsilon(1e-12));
    }
    CHECK(all[0]["wall_clock_s"] < all[1]["wall_clock_s"]);
  }
  const Folder folder;
  write_all(
      folder / "s.toml",
      read_all(kScenario) + "\n[strategy.compression]\nkind = \"top_k\"\nkept_share = 0.5\nshare = 1\n");
  const std::string command = "fomoe simulate " + (folder / "s.toml") + " --set strategy.method=diloco" +
                              " --set strategy.expert_overlap=2";
  CHECK(run_in(folder.path(), command).exit_status == 2);  // share is no key
  const Ran ran = run_in(folder.path(), command + " --unset strategy.compression.share");
  CHECK_MESSAGE(ran.exit_status == 0, ran.err);
}

TEST_CASE("mistakes in --vary, --shard and --jobs give exit status 2 and the expected value") {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"", "--vary: got none; expected at least one; for example --vary strategy.local_steps=16,32,64"},
      {"--vary strategy.local_step=1", "did you mean local_steps?"},
      {"--vary strategy.method=ddp,dilocoo",
       "--vary strategy.method=dilocoo: strategy.method: got \"dilocoo\""},
      {"--vary platform.bandwidth=1,2", "got 1 (no unit)"},
      {"--vary strategy.local_steps=1..10", "got a range without a step"},
      {"--vary strategy.local_steps=10..1+1", "got a range that ends before it begins"},
      {"--vary strategy.local_steps=1..10*1", "got a range that never ends"},
      {"--vary strategy.local_steps=1..10+0.5", "got \"0.5\" as the step"},
      {"--vary strategy.local_steps=1,,2", "got an empty value"},
      {"--vary strategy.local_steps", "got no key=values"},
      {"--vary seed=1 --vary seed=2", "got the same key twice"},
      {"--vary strategy.compression=1,2", "strategy.compression: got 1; expected a table"},
      {"--vary strategy.compression.share=1", "strategy.compression.share: got an unknown key"},
      {"--vary prices.gpu_hour=1USD..2USD+1USD", "got a range of prices; expected single prices"},
      {"--engine closed-form --vary seed=1..1000000+1 --vary strategy.local_steps=1..2000+1",
       "--vary: got 2000000000 rows; expected at most 1000000000 in one shard; for example --shard 1/3"},
      {"--vary seed=1 --shard 3/2", "--shard: got \"3/2\"; expected i/n with 1 ≤ i ≤ n"},
      {"--vary seed=1 --jobs 0", "--jobs: got \"0\"; expected a whole number from 1 to 4096"},
      {"--vary seed=1 --output s.txt", "expected - or a file that ends in .csv or .json"},
  };
  for (const auto& mistake : wrong) {
    const std::string &options = mistake.first, &message = mistake.second;
    const Ran ran = sweep(options);
    CAPTURE(options);
    CHECK(ran.exit_status == 2);
    CHECK(ran.out.empty());
    CHECK_MESSAGE(ran.err.find(message) != std::string::npos, ran.err);
  }
}

TEST_CASE("a killed sweep continues with --resume: the same bytes, and nothing is computed twice") {
  const Folder folder;
  const std::string sweep = "fomoe sweep " + source_dir() +
                            "/tests/ideal/two-sites.toml --vary strategy.local_steps=1..400+1 "
                            "--vary strategy.method=diloco,fsdp --vary strategy.expert_overlap=1,3 --jobs 2 ";
  REQUIRE(run_in(folder.path(), sweep + "--output whole.csv").exit_status == 0);
  CHECK(!std::filesystem::exists(folder / "whole.csv.partial"));
  // Kill the sweep as soon as the journal has some chunks.
  const Ran killed =
      run_in(folder.path(), "sh -c '" + sweep +
                                "--output rows.csv & p=$!; while kill -0 $p && [ $(stat -c %s "
                                "rows.csv.partial || echo 0) -lt 20000 ]; do sleep 0.01; done; "
                                "kill -9 $p; wait $p'");
  CHECK(killed.exit_status == 128 + 9);
  CHECK(!std::filesystem::exists(folder / "rows.csv"));
  REQUIRE(std::filesystem::exists(folder / "rows.csv.partial"));
  // Half of a chunk at the end, as a crash of the machine may leave it.
  std::filesystem::resize_file(folder / "rows.csv.partial",
                               std::filesystem::file_size(folder / "rows.csv.partial") - 7);

  Ran other = run_in(folder.path(), sweep + "--set workload.tokens=2e8 --output rows.csv --resume");
  CHECK(other.exit_status == 2);
  CHECK(other.err.find("--resume: got rows.csv.partial, which belongs to another sweep") !=
        std::string::npos);
  CHECK(std::count(other.err.begin(), other.err.end(), '\n') == 1);

  const Ran resumed = run_in(folder.path(), sweep + "--output rows.csv --resume");
  CAPTURE(resumed.err);
  CHECK(resumed.exit_status == 0);
  const std::size_t at = resumed.err.find("resumed after ");
  REQUIRE(at != std::string::npos);
  CHECK(std::stoi(resumed.err.substr(at + 14)) >= 16);
  CHECK(read_all(folder / "rows.csv") == read_all(folder / "whole.csv"));
  CHECK(!std::filesystem::exists(folder / "rows.csv.partial"));
}

TEST_CASE(
    "a sweep's journal: chunks are read back, damaged ones are left out, another sweep's is recognised") {
  const Folder folder;
  const std::string path = folder / "rows.csv.partial";
  const auto chunk = [](std::uint64_t first, const std::string& problem) {
    fomoe::sweep::Chunk made;
    made.first_row = first;
    made.resize(2);
    for (std::size_t c = 0; c < fomoe::sweep::kResultCount; ++c)
      made.results[c] = {static_cast<double>(first) + 0.1 * static_cast<double>(c), fomoe::sweep::kUnknown};
    made.problems = {"", problem};
    return made;
  };
  {
    fomoe::sweep::Journal journal(path, "one");
    CHECK(journal.found() == fomoe::sweep::Journal::Found::nothing);
    journal.start_anew();
    for (const std::uint64_t first : {10, 12, 14})
      journal.append(chunk(first, "why " + std::to_string(first)));
  }
  CHECK(fomoe::sweep::Journal(path, "two").found() == fomoe::sweep::Journal::Found::other);
  std::string bytes = read_all(path);
  bytes[bytes.size() - 30] = static_cast<char>(bytes[bytes.size() - 30] ^ 1);  // in the last chunk
  write_all(path, bytes);

  fomoe::sweep::Journal journal(path, "one");
  REQUIRE(journal.found() == fomoe::sweep::Journal::Found::same);
  std::vector<fomoe::sweep::Chunk> read;
  CHECK(journal.go_on(10, [&](const fomoe::sweep::Chunk& one) { read.push_back(one); }) == 14);
  REQUIRE(read.size() == 2);
  CHECK(read[1].first_row == 12);
  CHECK(read[1].results[3][0] == 12.3);
  CHECK(std::isnan(read[1].results[3][1]));
  CHECK(read[1].problems == std::vector<std::string>{"", "why 12"});
  journal.append(chunk(14, "again"));
  read.clear();
  CHECK(fomoe::sweep::Journal(path, "one").go_on(10, [&](const auto& one) { read.push_back(one); }) == 16);
  CHECK(read.back().problems[1] == "again");
}

TEST_CASE("a sweep says which keys change no row, and why") {
  const Folder folder;
  const auto told = [&](const std::string& arguments) {
    const Ran ran = run_in(source_dir(), "fomoe sweep tests/ideal/two-sites.toml --output " +
                                             (folder / "s.csv") + " " + arguments);
    REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
    return ran.err;
  };
  const std::string unused = told(
      "--engine closed-form --set strategy.method=diloco --vary strategy.overlap_steps=0,1,2 --vary "
      "strategy.local_steps=16,32");
  CHECK(unused.find("strategy.overlap_steps changes no row: diloco does not use it") != std::string::npos);
  CHECK(unused.find("local_steps changes no row") == std::string::npos);
  const std::string limits = told(
      "--vary network_model.tcp_window=1GiB,2GiB --vary strategy.local_steps=16,32 --set "
      "platform.bandwidth=1Gbps");
  CHECK(limits.find("network_model.tcp_window changes no row: nothing in these rows depends on it") !=
        std::string::npos);
}

TEST_CASE("costs in the rows of a sweep have their currency") {
  const Ran ran = run_in(source_dir(),
                         "fomoe sweep tests/ideal/two-sites.toml --engine closed-form --vary "
                         "strategy.local_steps=16,32 --set prices.gpu_hour=2.5EUR --output -");
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
  const json all_rows = json::parse(ran.out)["rows"];  // the loop would not keep the document alive
  for (const json& row : all_rows) CHECK(row["currency"] == "EUR");
  const Ran mixed = run_in(source_dir(),
                           "fomoe sweep tests/ideal/two-sites.toml --engine closed-form --vary "
                           "prices.gpu_hour=1USD,2EUR --output -");
  CHECK(mixed.exit_status == 2);
  CHECK(mixed.err.find("got prices in USD and EUR; expected one currency") != std::string::npos);
}

TEST_CASE("rows of the closed form say where it is an approximation, and so does a message") {
  const Folder folder;
  const std::string command = "fomoe sweep '" + std::string(kScenario) +
                              "' --unset compute.step_time --set compute.peak_flops=1TFLOPS --set "
                              "compute.mfu=0.4 --vary strategy.method=diloco,fedavg --vary "
                              "workload.global_batch_sequences=4,5 --output -";
  const Ran formula = run_in(folder.path(), command + " --engine closed-form");
  const json rows = json::parse(formula.out)["rows"];
  REQUIRE(rows.size() == 4);
  for (const json& row : rows) {
    // One of the two sites has one sequence more, and the other one does not wait for it at the server.
    const bool drifts = row["strategy.method"] == "fedavg" && row["workload.global_batch_sequences"] == 5;
    CHECK(row["closed_form_exact"] == !drifts);
  }
  CHECK(formula.err.find("only approximates 1 of 4 rows") != std::string::npos);
  const Ran simulated = run_in(folder.path(), command + " --engine simulated");
  const json all_rows = json::parse(simulated.out)["rows"];  // the loop would not keep the document alive
  for (const json& row : all_rows) CHECK(row["closed_form_exact"].is_null());
  CHECK(simulated.err.find("approximates") == std::string::npos);
}
