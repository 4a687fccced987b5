// Tests in a real browser that no text of a stranger's result or scenario becomes markup or a script: hostile
// names stand in every field that the readers let through.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/browser/browser.hpp"

using namespace fomoe::tests;
using nlohmann::json;

namespace {

const std::string kShipped = FOMOE_SOURCE_DIR "/experiments/scenarios/two-sites.toml";
const std::string kTake = "document.documentElement.dataset.taken=1";
/// Leaves attributes, scripts, titles and text areas, and does harm in each; the last part is for templates.
const std::string kMarkup = "\"'></script></title></textarea><script>" + kTake +
                            "</script><img src=x onerror=" + kTake + "><svg onload=" + kTake +
                            ">{{title}}${" + kTake + "}";
const std::string kLink = "javascript:" + kTake;

void check_untaken(const Shown& page) {
  CHECK_MESSAGE(page.messages.empty(), page.messages);
  CHECK(count(page.dom, "data-taken") == 0);
  CHECK(count(page.dom, "href=\"javascript:") == 0);
}

/// The place of a value without the numbers of arrays: /sites/3/name and /sites/4/name are the same field.
std::string field_of(const std::string& pointer) {
  static const std::regex number("/[0-9]+(?=/|$)");
  return std::regex_replace(pointer, number, "/*");
}

struct Places {
  std::vector<json::json_pointer> texts;    // of values
  std::vector<json::json_pointer> objects;  // that may get another name
};

void find_places(const json& value, const json::json_pointer& at, Places& places) {
  if (value.is_string()) places.texts.push_back(at);
  if (value.is_object()) {
    places.objects.push_back(at);
    for (const auto& [name, inner] : value.items()) find_places(inner, at / name, places);
  }
  if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) find_places(value[i], at / i, places);
  }
}

bool is_read(const Folder& folder, const json& result) {
  write_all(folder / "tried.json", result.dump());
  const Ran ran = run_in(folder.path(), "fomoe report tried.json --output tried.html");
  REQUIRE((ran.exit_status == 0 || ran.exit_status == 2));
  return ran.exit_status == 0;
}

struct Hostile {
  json result;
  int texts = 0, names = 0, refused = 0;  // fields
};

/// The result with `text` in every field that may have any text, and as a further name in every object that
/// may have one.
Hostile made_hostile(const Folder& folder, const json& result, const std::string& text) {
  Hostile hostile{result};
  Places places;
  find_places(result, json::json_pointer(), places);
  std::set<std::string> done;
  const auto try_each = [&](const std::vector<json::json_pointer>& pointers, int& accepted,
                            const auto& change) {
    for (const json::json_pointer& first : pointers) {
      const std::string field = field_of(first.to_string());
      if (!done.insert(field).second) continue;
      json changed = hostile.result;
      for (const json::json_pointer& other : pointers) {
        if (field_of(other.to_string()) == field) change(changed[other]);
      }
      const bool read = is_read(folder, changed);
      if (read) hostile.result = std::move(changed);
      ++(read ? accepted : hostile.refused);
    }
  };
  try_each(places.texts, hostile.texts, [&](json& value) { value = text; });
  done.clear();
  try_each(places.objects, hostile.names, [&](json& value) { value[text] = 1.5; });
  return hostile;
}

}  // namespace

TEST_CASE(
    "hostile texts in every field of a result run nothing and fetch nothing on the page of fomoe report") {
  const Folder folder;
  must_run(folder, "fomoe simulate " + kShipped + " --output run.json");
  must_run(folder,
           "fomoe sweep " + kShipped +
               " --vary strategy.local_steps=1,4 --vary strategy.method=ddp,fomoe --output sweep.json");
  must_run(folder, "fomoe compare " + kShipped +
                       " --case strategy.method=ddp --case strategy.method=fomoe --output comparison.json");
  must_run(folder,
           "fomoe plan " + kShipped + " --vary strategy.method=diloco,fomoe --top 3 --output plan.json");
  must_run(folder, "fomoe solve " + kShipped + " --for strategy.local_steps --output solve.json");
  const std::string file = "<img src=x onerror=" + kTake + ">.json";
  for (const std::string name : {"run", "sweep", "comparison", "plan", "solve"}) {
    CAPTURE(name);
    const json result = json::parse(read_all(folder / (name + ".json")));
    for (const std::string& text : {kMarkup, kLink}) {
      const Hostile hostile = made_hostile(folder, result, text);
      MESSAGE(name << ": " << hostile.texts << " fields with a hostile text, " << hostile.names
                   << " objects with a hostile name, " << hostile.refused << " refused");
      CHECK(hostile.texts + hostile.names >= 5);  // of a sweep, whose rows are numbers
      write_all(folder / file, hostile.result.dump());
      must_run(folder, "fomoe report '" + file + "' --output hostile.html");
      check_untaken(shown(folder, "hostile.html"));
    }
  }

  SUBCASE("the test sees a page that was taken") {
    std::string broken = read_all(folder / "hostile.html");
    broken.insert(broken.find("</main>"), kMarkup);
    write_all(folder / "broken.html", broken);
    const Shown page = shown(folder, "broken.html");
    CHECK((!page.messages.empty() || count(page.dom, "data-taken") > 0));
  }
}

TEST_CASE(
    "hostile texts in a scenario and its platform run nothing and fetch nothing on the pages of report and "
    "explore") {
  const Folder folder;
  json scenario = json::parse(
      R"({"model": {"preset": "small"}, "workload": {"tokens": 1e8, "global_batch_sequences": 256},
    "strategy": {"method": "diloco", "local_steps": 16}, "compute": {"step_time": "420ms"}})");
  scenario["name"] = scenario["description"] = kMarkup;
  scenario["platform"]["file"] = "p.toml";
  write_all(folder / "s.json", scenario.dump());
  std::string platform =
      "name = '''" + kMarkup + "'''\nsource = '''" + kMarkup + "'''\n[default_path]\nlatency = '5ms'\n";
  for (const char* site : {"a", "b"}) {
    platform += "[[site]]\nname = '''" + kMarkup + site +
                "'''\nuplink = '1Gbps'\ndownlink = '1Gbps'\nregion = '''" + kMarkup + "'''\n";
  }
  write_all(folder / "p.toml", platform);
  must_run(folder, "fomoe simulate s.json --output run.json");
  must_run(folder, "fomoe report run.json --output report.html");
  CHECK(count(read_all(folder / "report.html"), "onerror") > 0);  // the names arrived, as texts
  check_untaken(shown(folder, "report.html"));
  must_run(folder, "fomoe explore s.json --export explore.html");
  check_untaken(shown(folder, "explore.html"));
}
