// Tests that the pages of `fomoe report` draw in a real browser and write no messages to its console.
#include <doctest/doctest.h>

#include <sstream>
#include <string>

#include "tests/experiments/run_fomoe.hpp"

namespace {

using namespace fomoe::tests;

const std::string kTwoSites = FOMOE_SOURCE_DIR "/experiments/scenarios/two-sites.toml";

void must_run(const Folder& folder, const std::string& command) {
  const Ran ran = run_in(folder.path(), command);
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
}

struct Shown {
  std::string dom;       // the document after its scripts have run
  std::string messages;  // the lines that the scripts wrote to the console
};

/// Loads a file of the folder in Chromium, which gets a profile of its own, and returns the page.
Shown shown(const Folder& folder, const std::string& name) {
  const Ran ran = run_in(
      folder.path(),
      "'" FOMOE_CHROMIUM "' --headless --no-sandbox --disable-gpu --user-data-dir='" + (folder / "profile") +
          "' --enable-logging=stderr --virtual-time-budget=5000 --dump-dom 'file://" + (folder / name) + "'");
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
  Shown page = {ran.out, ""};
  std::istringstream lines(ran.err);
  for (std::string line; std::getline(lines, line);) {
    if (line.find("CONSOLE") != std::string::npos) page.messages += line + '\n';
  }
  return page;
}

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("every chart of a run, of several runs and of a plan is drawn without a message on the console") {
  const Folder folder;
  must_run(folder, "fomoe simulate " + kTwoSites + " --output run.json");
  must_run(folder, "fomoe simulate " + kTwoSites + " --set strategy.method=ddp --output ddp.json");
  must_run(folder,
           "fomoe plan " + kTwoSites + " --vary strategy.method=diloco,fomoe --top 5 --output plan.json");
  must_run(folder, "fomoe report run.json ddp.json plan.json --output report.html");
  const Shown page = shown(folder, "report.html");
  CHECK_MESSAGE(page.messages.empty(), page.messages);
  // Two charts compare the runs, each run has four, and the plan has three. Chart.js sets the size of each
  // canvas on which it draws.
  CHECK(count(page.dom, "<canvas role=\"img\"") == 2 + 2 * 4 + 3);
  CHECK(count(page.dom, "display: block; box-sizing: border-box;") == 2 + 2 * 4 + 3);

  SUBCASE("the test detects a script that fails and a resource that is fetched") {
    std::string broken = read_all(folder / "report.html");
    broken.insert(broken.find("</main>"),
                  "<script>nothing.called.this()</script><img src=\"https://example.com/a.png\">");
    write_all(folder / "broken.html", broken);
    const std::string messages = shown(folder, "broken.html").messages;
    CHECK(messages.find("nothing is not defined") != std::string::npos);
    CHECK(messages.find("Content Security Policy") != std::string::npos);
  }
}
