// Files that nest deeply, and objects with very many keys, are refused before they are parsed: the parsers
// call themselves for each level. Each of these inputs once ended the program with a signal or kept it busy
// for minutes.
#include "experiments/text/nesting.hpp"

#include <doctest/doctest.h>

#include <string>

#include "experiments/files/step_profile_io.hpp"
#include "experiments/model_files/hf_config.hpp"
#include "experiments/model_files/weights.hpp"
#include "experiments/scenario/scenario_reader.hpp"
#include "experiments/step_profiles/logs/log_reader.hpp"
#include "platforms/support/atomic_file.hpp"
#include "tests/experiments/run_fomoe.hpp"

using namespace fomoe;

namespace {

constexpr int kLevels = 100'000;

std::string repeated(const std::string& part, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += part;
  return text;
}

/// A folder with one file.
struct OneFile {
  OneFile(const std::string& name, const std::string& text) : path(folder / name) { write_file(path, text); }
  tests::Folder folder;
  std::string path;
};

template <class Read>
std::string refusal(const Read& read) {
  try {
    read();
  } catch (const FileError& error) {
    return error.what();
  }
  return "accepted";
}

std::string scenario_refusal(const std::string& text) {
  const OneFile file("scenario.toml", text);
  const std::string message = refusal([&] { (void)scenario::read_scenario(file.path); });
  return message.starts_with(file.path) ? message.substr(file.path.size()) : message;
}

bool says(const std::string& message, const std::string& part) {
  INFO(message.substr(0, 300));
  return message.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a scenario may not nest deeply") {
  CHECK(says(scenario_refusal(repeated(R"({"a":)", kLevels) + "1" + repeated("}", kLevels)), "200 levels"));
  CHECK(says(scenario_refusal(R"({"a":)" + repeated("[", kLevels) + repeated("]", kLevels) + "}"),
             "200 levels"));
  CHECK(says(scenario_refusal("a" + repeated(".a", kLevels) + " = 1"),
             ":1: TOML: got a name of more than 32 parts"));
  CHECK(says(scenario_refusal("[a" + repeated(R"(."a")", kLevels) + "]\nb = 1"), "more than 32 parts"));
  CHECK(says(scenario_refusal("a = " + repeated("{a.b.c.d.e.f.g.h = ", kLevels)), "nested value depth"));
}

TEST_CASE("a wrong line of any length gets its message") {
  CHECK(says(scenario_refusal("a = " + std::string(1'000'000, 'x')), ":1: TOML: got"));
  // The remedy for a missing quote still appears where the line is as long as people write them.
  CHECK(says(scenario_refusal("[strategy]\nmethod = fomoe"), "fomoe without quotes"));
}

TEST_CASE("numbers beyond double precision are refused in JSON as in TOML") {
  CHECK(says(scenario_refusal(R"({"seed": 1e999})"), "JSON: got a number that is too large"));
}

TEST_CASE("an object may not have so many keys that comparing them takes minutes") {
  std::string text = R"({"schema": "fomoe.step-profile/1")";
  for (int i = 0; i < 30'000; ++i) text += ",\"k" + std::to_string(i) + "\":1";
  CHECK(says(scenario_refusal(text + "}"), "an object with too many keys"));
  const OneFile profile("profile.json", text + "}");
  CHECK(says(refusal([&] { (void)scenario::read_step_profile(profile.path); }),
             "an object with too many keys"));
  CHECK(scenario::excess_in_sorted_json(text).empty());  // their look-ups take no such time
}

TEST_CASE("of very many mistakes only the first are told") {
  std::string keys, sites = "[model]\npreset = \"small\"\n";
  for (int i = 0; i < 5000; ++i) keys += "k" + std::to_string(i) + " = 1\n";
  for (int i = 0; i < 5000; ++i) sites += "[[site]]\nname = 1\nk = " + std::to_string(i) + "\n";
  CHECK(says(scenario_refusal(keys), "… and 4980 more unknown keys"));
  CHECK(says(scenario_refusal(sites), "… and at least 980 more mistakes"));
}

TEST_CASE("texts within the limits pass, whatever their strings contain") {
  CHECK(scenario::excess_in_json(repeated("[", 200) + repeated("]", 200)).empty());
  CHECK_FALSE(scenario::excess_in_json(repeated("[", 201) + repeated("]", 201)).empty());
  CHECK(scenario::excess_in_json('"' + repeated("[", 300) + "\\\"" + repeated("[", 300) + '"').empty());
  CHECK(scenario::excess_in_json(repeated("[],", 1000)).empty());
  const std::string dots(300, '.');
  CHECK_FALSE(scenario::excess_in_toml("a = \"" + dots + "\" # " + dots + "\nb = '" + dots + "'"));
  CHECK_FALSE(scenario::excess_in_toml("a = \"\"\"x\n" + dots + "\n\"\"\"\n"));
  CHECK_FALSE(scenario::excess_in_toml(repeated("1.5, ", 100)));
  CHECK_FALSE(scenario::excess_in_toml("a" + repeated(".a", 31)));
  CHECK(scenario::excess_in_toml("a" + repeated(".a", 32)));
}

namespace {

/// A file of weights with this header and without weights.
std::string weights_with(const std::string& header) {
  std::string bytes(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(header.size() >> (8 * i) & 0xff);
  return bytes + header;
}

}  // namespace

TEST_CASE("what toml++ does not check is refused before") {
  // toml++ 3.3 has undefined behaviour for these; the fuzzer found them.
  CHECK(says(scenario_refusal("seed = 1\n[,[a]]"), ":2: TOML: got a [table] without a name"));
  CHECK(says(scenario_refusal("\xc2\xbc = 1"), "a character outside of ASCII without quotes"));
  CHECK(says(scenario_refusal("[network_model]\nhop = 10\xc2\xb5s"), "10\xc2\xb5s without quotes"));
  CHECK(says(scenario_refusal("a = 10'\xd2\x91"), "10'\xd2\x91 without quotes"));
  for (const char* malformed :
       {"a = [5\"\xd0\x95\n", "a = 04_~3{\"177\xce\x82", "a=323=\"\"\"+1\xd0\xb8*1t", "[a]\nb=2=\"\xcf\x9d"})
    CHECK(says(scenario_refusal(malformed), "got "));
  CHECK(says(scenario_refusal("n =[}}+"), ":1: TOML: got "));
  CHECK(says(scenario_refusal("a = [\"\"\"b\"\"\"\"] # it's\n[,c]\n"),
             ":2: TOML: got a [table] without a name"));
  CHECK_FALSE(
      scenario::excess_in_toml("\xef\xbb\xbf"
                               "a = [\n  [ {b = 1} ],\n [+1]] # \xc2\xbc\n[[ \"\xc2\xbc\" ]]\n"));
}

TEST_CASE("a model's files may not nest deeply") {
  const std::string deep = R"({"a.weight":)" + repeated("[", kLevels) + repeated("]", kLevels) + "}";
  const OneFile config("config.json", deep);
  CHECK(says(refusal([&] { (void)scenario::read_hf_config(config.path); }), "200 levels"));
  const OneFile weights("model.safetensors", weights_with(deep));
  CHECK(says(refusal([&] { (void)scenario::read_weights(weights.folder.path()); }), "200 levels"));
  CHECK(says(refusal([&] { (void)step_profiles::read_kineto("trace.json", deep, {}); }), "200 levels"));
}

TEST_CASE("an index of weights may name files that no system accepts") {
  // A tensor with a size of 0 has no elements, whatever its other sizes multiply to.
  const OneFile weights(
      "model.safetensors",
      weights_with(R"({"a.weight":{"dtype":"F32","shape":[4503599627370496,4503599627370496,0]}})"));
  CHECK_FALSE(says(refusal([&] { (void)scenario::read_weights(weights.folder.path()); }), "fits a machine"));
  write_file(weights.path + ".index.json", R"({"weight_map":{"a":")" + std::string(5000, 'x') + R"("}})");
  CHECK(says(refusal([&] { (void)scenario::read_weights(weights.folder.path()); }), "which is missing"));
}

TEST_CASE(
    "a name that a JSON object has twice is refused, since one of its values would be dropped in silence") {
  using scenario::excess_in_json;
  CHECK(excess_in_json(R"({"a": 1, "b": {"a": 1}, "c": [{"a": 1}, {"a": 2}]})").empty());
  CHECK(excess_in_json("{\"a\": 1,\n\"a\": 2}") == "the name \"a\" twice in line 2");
  CHECK(excess_in_json(R"({"b": {"x": ":", "a": 1, "\u0061": 2}})") ==
        R"(the name "\u0061" twice in line 1)");
  CHECK(scenario::excess_in_sorted_json(R"({"a": 1, "a": 2})").empty());  // in other programs' logs
  CHECK_FALSE(scenario::excess_in_sorted_json(R"({"a": 1, "a": 2})", true).empty());
  CHECK(says(scenario_refusal(R"({"seed": 1, "seed": 2})"), "got the name \"seed\" twice in line 1"));
}
