// Tests the note of a measured report on the links over which it was measured.
#include "tests/trainer/support.hpp"
#include "trainer/run/measured_report.hpp"

using fomoe::trainer::note_on_links;
using fomoe::trainer::ReportContext;

TEST_CASE("a report over emulated links says so, and whether they had been checked; others claim nothing") {
  ReportContext context;
  CHECK(note_on_links(context).starts_with("the run used the real connections between its processes"));
  context.links = "emulated and checked";
  CHECK(note_on_links(context).starts_with("fomoe-wan emulated the uplinks, downlinks, paths and latencies"));
  CHECK(note_on_links(context).find("before the run it measured that they are within 5 %") !=
        std::string::npos);
  context.links = "emulated";
  CHECK(note_on_links(context).find("it did not measure them before the run (--no-check)") !=
        std::string::npos);
  context.links = "something that fomoe-wan never says";
  CHECK(note_on_links(context).starts_with("the run used the real connections between its processes"));
  // One process for all sites sends nothing over links.
  context.links = "emulated and checked";
  context.in_turn = true;
  CHECK(note_on_links(context).starts_with("the run used the real connections between its processes"));
}
