// Tests that the pages of `fomoe report` draw in a real browser and write no messages to its console.
#include <doctest/doctest.h>

#include <string>

#include "tests/browser/browser.hpp"

namespace {

using namespace fomoe::tests;

const std::string kShipped = FOMOE_SOURCE_DIR "/experiments/scenarios/two-sites.toml";

}  // namespace

TEST_CASE("every chart of a run, of several runs and of a plan is drawn without a message on the console") {
  const Folder folder;
  must_run(folder, "fomoe simulate " + kShipped + " --output run.json");
  must_run(folder, "fomoe simulate " + kShipped + " --set strategy.method=ddp --output ddp.json");
  must_run(folder,
           "fomoe plan " + kShipped + " --vary strategy.method=diloco,fomoe --top 5 --output plan.json");
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

TEST_CASE("a run and a plan fit on two printed pages") {
  const Folder folder;
  const std::string scenario = FOMOE_SOURCE_DIR "/experiments/scenarios/four-regions.toml";
  must_run(folder, "fomoe simulate " + scenario + " --output run.json");
  must_run(folder, "fomoe plan " + scenario + " --within cost=4000USD --output plan.json");
  for (const std::string name : {"run", "plan"}) {
    CAPTURE(name);
    must_run(folder, "fomoe report " + name + ".json --output " + name + ".html");
    const std::string pdf = printed(folder, name + ".html");
    const int pages = count(pdf, "/Type /Page\n");  // of each page; "/Type /Pages" is their list
    CHECK(pages >= 1);
    CHECK(pages <= 2);
  }
}
