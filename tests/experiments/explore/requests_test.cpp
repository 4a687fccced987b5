// Tests of what the server of `fomoe explore` answers, without a server: the token, the Host check, the
// answers beside those of the command line, and mistakes.
#include "experiments/explore/requests.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "costmodel/formula/closed_form.hpp"
#include "experiments/cli/command.hpp"
#include "experiments/explore/controls.hpp"
#include "experiments/explore/formula.hpp"
#include "experiments/explore/grid.hpp"
#include "tests/experiments/run_fomoe.hpp"

namespace {

using namespace fomoe;
using namespace fomoe::tests;
using nlohmann::json;

const std::string kFourRegions = source_dir() + "/experiments/scenarios/four-regions.toml";
const std::string kToken = "0123456789abcdef";

explore::Service service_for(const std::string& path) {
  explore::Service service;
  service.question.path = path;
  service.token = kToken;
  service.authority = "127.0.0.1:8000";
  service.page = "the page";
  service.simulate = commands::run_simulate;
  return service;
}

explore::Request posted(const std::string& name, const std::string& body) {
  return {"POST", "/" + kToken + "/" + name, "127.0.0.1:8000", "http://127.0.0.1:8000", body};
}

/// The answer, whether it comes at once or from work.
explore::Reply reply_to(const explore::Service& service, const explore::Request& request) {
  const explore::Answer answer = explore::answer_to(service, request);
  return answer.work ? answer.work() : answer.now;
}

json asked(const explore::Service& service, const std::string& name, const json& settings, int status = 200) {
  const explore::Reply reply = reply_to(service, posted(name, json{{"settings", settings}}.dump()));
  CHECK_MESSAGE(reply.status == status, reply.body);
  CHECK(reply.type == "application/json");
  return json::parse(reply.body);
}

json printed(const std::string& command) {
  const Ran ran = run_in("/", command);
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
  return json::parse(ran.out);
}

/// Whether the document of `fomoe simulate` contains the report.
void check_contains(const json& document, const json& report) {
  CHECK(report.size() > 10);
  for (const auto& item : report.items()) CHECK_MESSAGE(document.at(item.key()) == item.value(), item.key());
}

}  // namespace

TEST_CASE("a request needs the token, an own Host and no foreign Origin") {
  const explore::Service service = service_for(kTwoSites);
  const explore::Request good = {"GET", "/" + kToken + "/", "127.0.0.1:8000", "", ""};
  const auto status = [&](auto change) {
    explore::Request request = good;
    change(request);
    const explore::Answer answer = explore::answer_to(service, request);
    if (answer.now.status == 403) CHECK(answer.now.body.find("the page") == std::string::npos);
    return answer.now.status;
  };
  CHECK(explore::answer_to(service, good).now.body == "the page");
  CHECK(status([](auto&) {}) == 200);
  CHECK(status([](auto& request) { request.host = "localhost:8000"; }) == 200);
  CHECK(status([](auto& request) { request.origin = "http://localhost:8000"; }) == 200);
  CHECK(status([](auto& request) { request.host = "evil.example:8000"; }) == 403);
  CHECK(status([](auto& request) { request.host = "127.0.0.1:8001"; }) == 403);
  CHECK(status([](auto& request) { request.host = ""; }) == 403);
  CHECK(status([](auto& request) { request.origin = "http://evil.example"; }) == 403);
  CHECK(status([](auto& request) { request.origin = "null"; }) == 403);
  for (const char* target : {"/", "", "/0123456789abcdef", "/0123456789abcdeX/", "/0123456789abcde/",
                             "/0123456789abcdef0/", "//", "/formula"})
    CHECK_MESSAGE(status([&](auto& request) { request.target = target; }) == 403, target);
  CHECK(status([](auto& request) { request.target += "other"; }) == 404);
  CHECK(status([](auto& request) { request.method = "DELETE"; }) == 405);
}

TEST_CASE("the address that opens the browser leads to the page once") {
  const explore::Service service = service_for(kTwoSites);
  explore::Ticket ticket("fedcba");
  CHECK(ticket.address(service) == "http://127.0.0.1:8000/open/fedcba");
  const auto redeemed = [&](const std::string& target, const std::string& host) {
    return ticket.redeemed(service, {"GET", target, host, "", ""});
  };
  CHECK(!redeemed("/open/fedcbX", "127.0.0.1:8000"));
  CHECK(!redeemed("/open/", "127.0.0.1:8000"));
  CHECK(!redeemed("/open/fedcba", "evil.example"));
  const auto reply = redeemed("/open/fedcba", "127.0.0.1:8000");
  REQUIRE(reply);
  CHECK(reply->status == 303);
  CHECK(reply->location == "/" + kToken + "/");
  CHECK(!redeemed("/open/fedcba", "127.0.0.1:8000"));
  CHECK(!redeemed("/open/", "127.0.0.1:8000"));
}

TEST_CASE("the answers are those of the command line with the same settings") {
  const json settings = {
      {"strategy.local_steps", "64"}, {"platform.bandwidth", "2.5Gbps"}, {"platform.latency", "40ms"}};
  const explore::Service service = service_for(kTwoSites);
  const std::string options =
      " --set strategy.local_steps=64 --set platform.bandwidth=2.5Gbps --set platform.latency=40ms";
  const std::string command = "fomoe simulate " + kTwoSites + options;

  const json formula = asked(service, "formula", settings);
  // nlohmann::json sorts the keys of an object, and so the order of the overrides.
  check_contains(printed("fomoe simulate " + kTwoSites + options + " --engine closed-form --output -"),
                 formula["report"]);
  const json simulated = asked(service, "simulate", settings);
  const json document = printed(command + " --output -");
  check_contains(document, simulated["report"]);
  CHECK(document["round_timeline"] == simulated["round_timeline"]);
  CHECK(document["sent_bytes_per_site"] == formula["sent"]);
  check_contains(printed(simulated["command"].get<std::string>() + " --output -"), simulated["report"]);

  SUBCASE("and so is the scenario as TOML, which gives the same answer in the same folder") {
    const json toml = asked(service, "toml", settings);
    const Folder folder;
    write_all(folder / "copied.toml", toml["toml"].get<std::string>());
    json copied = printed("fomoe simulate " + (folder / "copied.toml") + " --output -");
    CHECK(copied["wall_clock_s"] == document["wall_clock_s"]);
    CHECK(copied["scenario"] == document["scenario"]);
  }
}

TEST_CASE("named sites, quotes and the overrides of the command line reach the reader and the command") {
  explore::Service service = service_for(kFourRegions);
  service.question.overrides = {"strategy.local_steps=128", "!prices.file", "prices.gpu_hour=2USD"};
  const json settings = {{"platform.use_sites", "aws:us-east-1, azure:eastus"}};
  const json formula = asked(service, "formula", settings);
  CHECK(formula["sites"] == 2);
  CHECK(formula["local_steps"] == 128);
  const json document = printed(formula["command"].get<std::string>() + " --engine closed-form --output -");
  check_contains(document, formula["report"]);
}

TEST_CASE("mistakes name the key of the field and have the reader's own message") {
  const explore::Service service = service_for(kTwoSites);
  const auto mistakes = [&](const json& settings) {
    return asked(service, "formula", settings, 422)["mistakes"];
  };
  const json wrong_value = mistakes({{"strategy.local_steps", "0.5"}});
  REQUIRE(wrong_value.size() == 1);
  CHECK(wrong_value[0]["key"] == "strategy.local_steps");
  const Ran ran = run_in("/", "fomoe simulate " + kTwoSites + " --set strategy.local_steps=0.5");
  CHECK(ran.err.find(wrong_value[0]["text"].get<std::string>()) != std::string::npos);
  CHECK(wrong_value[0]["text"].get<std::string>().starts_with("got 0.5; expected "));

  // The value contradicts the number of sites; and a text with the separators of a message.
  CHECK(mistakes({{"strategy.expert_overlap", "7"}})[0]["key"] == "strategy.expert_overlap");
  CHECK(mistakes({{"platform.bandwidth", "a: b.c: d"}})[0]["key"] == "platform.bandwidth");
  // Two mistakes at once, and an unknown key.
  CHECK(mistakes({{"strategy.local_steps", "x"}, {"platform.latency", "25"}}).size() == 2);
  CHECK(mistakes({{"strategy.nothing", "1"}})[0]["key"] == "strategy.nothing");
  for (const char* name : {"simulate", "compare", "toml"})
    CHECK(asked(service, name, {{"platform.sites", "x"}}, 422)["mistakes"][0]["key"] == "platform.sites");
  // What the page would never send.
  for (const char* body : {"", "[]", "{\"settings\": 3}", "{\"settings\": {\"a=b\": \"1\"}}",
                           "{\"settings\": {\"a\": {}}}", "{}"})
    CHECK_MESSAGE(reply_to(service, posted("formula", body)).status == 400, body);
  CHECK(reply_to(service, posted("report", "{\"results\": []}")).status == 400);
  CHECK(reply_to(service, posted("nothing", "{\"settings\": {}}")).status == 404);
}

TEST_CASE("a scenario file that changes is read again at the next move") {
  const Folder folder;
  write_all(folder / "s.toml", read_all(kTwoSites));
  const explore::Service service = service_for(folder / "s.toml");
  CHECK(asked(service, "formula", json::object())["local_steps"] == 16);
  std::string text = read_all(folder / "s.toml");
  text.replace(text.find("local_steps = 16"), 16, "local_steps = 32");
  write_all(folder / "s.toml", text);
  CHECK(asked(service, "formula", json::object())["local_steps"] == 32);
}

TEST_CASE("the bandwidth that a utilisation needs is the smallest that reaches it") {
  const explore::Question question = {kTwoSites, {"strategy.method=diloco"}};
  const costmodel::Scenario scenario = explore::read(question, question.overrides);
  for (const double target : explore::kTargets) {
    const double factor = explore::needed_factor(scenario, target);
    if (std::isnan(factor)) continue;
    const auto at = [&](double times) {
      costmodel::Scenario scaled = scenario;
      scaled.platform = platforms::scaled_bandwidth(scaled.platform, factor * times);
      return costmodel::closed_form(scaled).compute_utilization;
    };
    CHECK(at(1) >= target);
    CHECK(at(0.999) < target);
  }
  // Latency alone: 16 steps of 420 ms and two hops of 25 ms allow 99.26 %.
  CHECK(explore::needed_factor(scenario, 0.992) > 1);
  CHECK(std::isnan(explore::needed_factor(scenario, 0.993)));
}

TEST_CASE("the comparison has a Pareto front that no point beats, only with prices") {
  const json priced = asked(service_for(kFourRegions), "compare", json::object());
  const json& points = priced["points"];
  REQUIRE(points.size() > 50);
  int front = 0;
  for (const json& a : points) {
    bool beaten = false;
    for (const json& b : points)
      beaten = beaten || (b["wall_clock_s"] <= a["wall_clock_s"] && b["cost"] <= a["cost"] &&
                          (b["wall_clock_s"] < a["wall_clock_s"] || b["cost"] < a["cost"]));
    CHECK(a["front"] == !beaten);
    front += beaten ? 0 : 1;
  }
  CHECK(front > 0);
  CHECK(priced["methods"][0]["name"] == "diloco");
  CHECK(priced["methods"][0]["present"] == true);
  CHECK(asked(service_for(kTwoSites), "compare", json::object())["points"].empty());
}

TEST_CASE("each control starts with a value that the reader accepts and that changes nothing") {
  for (const std::string& path : {kTwoSites, kFourRegions}) {
    const explore::Service service = service_for(path);
    const json start = explore::controls_of(service.question);
    const json before = asked(service, "formula", json::object());
    CHECK(start["controls"].size() >= 9);
    for (const json& control : start["controls"]) {
      if (control["kind"] != "choice" || control["value"] == "") continue;
      const json after = asked(service, "formula", {{control["key"].get<std::string>(), control["value"]}});
      CHECK_MESSAGE(after["report"] == before["report"], control["key"]);
    }
  }
}

TEST_CASE("the slider of links begins with the scenario's factor, however it is written") {
  for (const char* factor : {"0.1", "\"10%\""}) {
    CAPTURE(factor);
    explore::Service service = service_for(kTwoSites);
    service.question.overrides = {std::string("platform.rate_factor=") + factor};
    const json start = explore::controls_of(service.question);
    for (const json& control : start["controls"])
      if (control["key"] == "platform.rate_factor") CHECK(control["value"] == 0.1);
  }
}

TEST_CASE("a slider shows the value of its key, also where sites and paths have values of their own") {
  const Folder folder;
  std::string text = read_all(kTwoSites);
  write_all(folder / "own.toml",
            text +
                "\n[[site]]\nname = 'site-0'\nstep_time = '100ms'\nbandwidth = '100Mbps'\n"
                "\n[[path]]\nfrom = 'site-0'\nto = 'site-1'\nlatency = '100ms'\n");
  const json controls = explore::controls_of({folder / "own.toml", {}})["controls"];
  std::map<std::string, double> values;
  for (const json& control : controls)
    if (control["kind"] == "number") values[control["key"]] = control["value"];
  CHECK(values.at("compute.step_time") == 0.42);
  CHECK(values.at("platform.bandwidth") == 1e9 / 8);
  CHECK(values.at("platform.latency") == 0.025);
}

TEST_CASE("a quality model of the file cannot be chosen away, which the page could not say") {
  const json controls = explore::controls_of({kTwoSites, {"quality.model=published"}})["controls"];
  for (const json& control : controls)
    if (control["key"] == "quality.model")
      CHECK(std::find(control["choices"].begin(), control["choices"].end(), json("")) ==
            control["choices"].end());
}

TEST_CASE("an exported page has each site's GPUs, and says where the closed form is an approximation") {
  const std::string unequal = source_dir() + "/experiments/scenarios/unequal-sites.toml";
  const json grid = explore::grid_of({unequal, {}})["grid"];
  CHECK(grid["gpus_per_site"] == "8/16/8");
  const json equal = explore::grid_of({kTwoSites, {}})["grid"];
  CHECK(grid["blocks"].at("fomoe||1")["exact"] == false);
  CHECK(equal["blocks"].at("fomoe||1")["exact"] == true);
}

TEST_CASE("the grid of an exported page has the numbers of the closed form") {
  // The scenario's own factor is one of the rates.
  const explore::Question question = {kTwoSites, {"model.layers=12", "platform.rate_factor=0.5"}};
  const json grid = explore::grid_of(question)["grid"];
  const auto index = [&](const json& list, double value) {
    return static_cast<std::size_t>(std::find(list.begin(), list.end(), json(value)) - list.begin());
  };
  const std::size_t rates = grid["rates"].size(), latencies = grid["latencies"].size();
  // The fragments of streaming_diloco follow from the local steps.
  // With decoupled_diloco, the bytes depend on the rate.
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"fomoe||1", "fomoe"},
      {"diloco||0", "diloco"},
      {"streaming_diloco||0", "streaming_diloco"},
      {"decoupled_diloco||0", "decoupled_diloco"}};
  for (const auto& [name, method] : cases) {
    for (const int local_steps : {2, 64}) {
      CAPTURE(name);
      CAPTURE(local_steps);
      const json& block = grid["blocks"].at(name);
      const auto k = static_cast<std::size_t>(
          std::find(block["local_steps"].begin(), block["local_steps"].end(), local_steps) -
          block["local_steps"].begin());
      const std::size_t at =
          (k * latencies + index(grid["latencies"], 2)) * rates + index(grid["rates"], 0.25);
      const json document = printed(fmt::format(
          "fomoe simulate {} --set model.layers=12 --set strategy.method={} --set strategy.local_steps={} "
          "--set "
          "network_model.latency_factor=2 --set platform.rate_factor=0.25 --engine closed-form --output -",
          kTwoSites, method, local_steps));
      // The grid keeps six digits.
      CHECK(block["wall_clock_s"][at].get<double>() ==
            doctest::Approx(document["wall_clock_s"].get<double>()).epsilon(1e-5));
      CHECK(block["utilization"][at].get<double>() ==
            doctest::Approx(document["compute_utilization"].get<double>()).epsilon(1e-5));
      CHECK(block["bytes"][at].get<double>() ==
            doctest::Approx(document["bytes_sent_per_site_per_round"].get<double>()).epsilon(1e-5));
    }
  }
}

TEST_CASE("all answers that read the scenario are work for a child, formulas with a short limit") {
  const explore::Service service = service_for(kTwoSites);
  for (const std::string name : {"formula", "toml", "compare", "simulate"}) {
    CAPTURE(name);
    const explore::Answer answer =
        explore::answer_to(service, posted(name, R"({"settings": {}, "page": "1"})"));
    REQUIRE(answer.work);
    const bool quick = name == "formula" || name == "toml";
    CHECK(answer.limit == (quick ? std::chrono::seconds(10) : std::chrono::seconds(600)));
  }
}
