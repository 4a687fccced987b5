// Tests that the figures of one answer agree with each other, and its sentences with its figures.
#include <doctest/doctest.h>

#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tests/experiments/run_fomoe.hpp"

using namespace fomoe::tests;

namespace {

const std::string kPricedScenario =
    "[model]\npreset = \"small\"\n[workload]\ntokens = 10e6\nglobal_batch_sequences = 256\n"
    "[strategy]\nmethod = \"diloco\"\nlocal_steps = 4\n[compute]\nstep_time = \"420ms\"\ngpus_per_site = 4\n"
    "[platform]\nsites = 2\nbandwidth = \"1Gbps\"\nlatency = \"25ms\"\n"
    "[prices]\ngpu_hour = \"2.50USD\"\negress_per_gb = \"0.05USD\"\n";

std::string answer_of_priced(const std::string& command, const std::string& options) {
  const Folder folder;
  write_all(folder / "s.toml", kPricedScenario);
  const Ran ran = run_in(folder.path(), "fomoe " + command + " s.toml " + options);
  REQUIRE(ran.exit_status == 0);
  return ran.out;
}

}  // namespace

TEST_CASE("the parts of the cost in a CSV add up, also with a store") {
  std::istringstream csv(
      answer_of_priced("simulate",
                       "--set strategy.collective=store --set platform.store.egress_per_gb=0.5USD "
                       "--output out.csv && cat out.csv"));
  std::string names, cells;
  std::getline(csv, names);
  std::getline(csv, cells);
  std::map<std::string, double> value;
  std::istringstream name_list(names), cell_list(cells);
  for (std::string name, cell; std::getline(name_list, name, ',') && std::getline(cell_list, cell, ',');)
    if (name.find("cost") != std::string::npos) value[name] = cell.empty() ? 0 : std::stod(cell);
  REQUIRE(value["store_cost"] > 0);
  CHECK(value["cost_total"] == doctest::Approx(value["gpu_cost"] + value["egress_cost"] + value["port_cost"] +
                                               value["store_cost"] + value["energy_cost"]));
}

TEST_CASE("a plan without a candidate of 20 rounds says so") {
  const std::string text =
      answer_of_priced("plan", "--vary strategy.method=diloco --vary strategy.local_steps=4,8 --top 2");
  CHECK(text.find("above the lowest; no candidate has 20 rounds") != std::string::npos);
}

TEST_CASE("costs on both sides of a target do not look equal") {
  const std::string text =
      answer_of_priced("solve", "--for prices.gpu_hour --target cost=0.1 --engine closed-form");
  CHECK(text.find("gives 0.10 USD; ") == std::string::npos);
  CHECK(text.find("gives 0.0") != std::string::npos);
}

TEST_CASE("BBR over connections with windows: what is lost is said, and idle times change no window") {
  const std::string text =
      answer_of_priced("simulate",
                       "--set network_model.host=linux --set network_model.congestion_control=bbr "
                       "--set network_model.loss_rate=0.01");
  CHECK(text.find("packets are lost with probability 0.01") != std::string::npos);
  CHECK(text.find("the window halves") == std::string::npos);
}
