// Helpers for tests of `fomoe report`: they make the page from results and read its parts.
#pragma once
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/experiments/run_fomoe.hpp"

namespace fomoe::tests {

using nlohmann::json;

inline const std::string kPrices =
    " --set prices.file=" + source_dir() + "/experiments/data/prices-example.toml";

inline void must_run(const std::string& folder, const std::string& command) {
  const Ran ran = run_in(folder, command);
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
}

/// Returns the page that `fomoe report` writes for the results in `folder`.
inline std::string page_of(const Folder& folder, const std::string& results) {
  const Ran ran = run_in(folder.path(), "fomoe report " + results + " --output report.html");
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
  CHECK(ran.out.empty());
  CHECK(ran.err == "wrote report.html\n");
  return read_all(folder / "report.html");
}

inline json simulated(const Folder& folder, const std::string& options = "") {
  must_run(folder.path(), "fomoe simulate " + kTwoSites + options + " --output run.json");
  return json::parse(read_all(folder / "run.json"));
}

inline int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

/// Returns the data of the page's charts.
inline std::vector<json> charts(const std::string& page) {
  const std::string begin = "<script type=\"application/json\">";
  std::vector<json> list;
  for (std::size_t at = page.find(begin); at != std::string::npos; at = page.find(begin, at)) {
    at += begin.size();
    list.push_back(json::parse(page.substr(at, page.find("</script>", at) - at)));
  }
  return list;
}

/// Checks that all tags are closed in the order of their nesting.
inline void check_nesting(std::string page) {
  page = page.substr(0, page.rfind("<script>\n/*!"));  // without the library and the text after it
  page = std::regex_replace(page, std::regex("<style>[^]*?</style>|<!--[^]*?-->"), "");
  const std::set<std::string> alone = {"meta", "!DOCTYPE"};
  std::vector<std::string> open;
  const std::regex tag("<(/?)([!A-Za-z][A-Za-z0-9]*)[^>]*>");
  for (std::sregex_iterator at(page.begin(), page.end(), tag), end; at != end; ++at) {
    const std::string name = (*at)[2];
    if (alone.contains(name)) continue;
    if ((*at)[1] == "") {
      open.push_back(name);
      continue;
    }
    REQUIRE_FALSE(open.empty());
    CHECK(open.back() == name);
    open.pop_back();
  }
  CHECK(open == std::vector<std::string>{"html", "body"});  // their end tags come after the library
}

}  // namespace fomoe::tests
