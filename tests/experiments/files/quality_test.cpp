// Tests of quality: the transcribed tables of the paper, users' own tables, and the commands' statements
// about quality.
#include <doctest/doctest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>

#include "experiments/files/quality_csv.hpp"
#include "tests/experiments/answer.hpp"

using namespace fomoe;
using namespace fomoe::tests;
using costmodel::QualityRow;
using costmodel::QualityTable;
using nlohmann::json;

namespace {

QualityTable shipped(const std::string& name) {
  return scenario::read_quality_csv(source_dir() + "/experiments/data/" + name);
}

const QualityRow& row(const QualityTable& table, const std::string& strategy, int k, const char* placement,
                      int sites, int overlap) {
  for (const QualityRow& r : table.rows) {
    if (r.strategy == strategy && r.local_steps == k && r.placement == placement && r.sites == sites &&
        r.expert_overlap == overlap)
      return r;
  }
  FAIL("no such row");
  return table.rows.front();
}

// The paper's own workload: small proxy, 640 steps of 1024 sequences.
const std::string kPaper =
    "tests/ideal/two-sites.toml --set workload.global_batch_sequences=1024 --set "
    "workload.tokens=1.34e9 "
    "--set quality.model=paper-table ";

}  // namespace

TEST_CASE("table exp0: 2 optimisers · 3 K · 3 M, spot values") {
  const QualityTable table = shipped("paper_exp0.csv");
  CHECK(table.rows.size() == 2 * 3 * 3);
  CHECK(row(table, "local_adamw", 32, "fixed", 2, 2).perplexity == 105.03);
  CHECK(row(table, "local_adamw", 32, "fixed", 2, 2).plus_minus == 14.67);
  CHECK(row(table, "local_adamw", 128, "fixed", 8, 8).perplexity == 159.71);
  CHECK(row(table, "diloco", 64, "fixed", 4, 4).perplexity == 124.17);
  CHECK(row(table, "diloco", 128, "fixed", 8, 8).plus_minus == 94.47);
}

TEST_CASE("table exp1: 2 optimisers · 3 K · 2 placements · (2 + 3 + 4) pairs of M and O_e, spot values") {
  const QualityTable table = shipped("paper_exp1.csv");
  CHECK(table.rows.size() == 2 * 3 * 2 * (2 + 3 + 4));
  std::map<std::tuple<std::string, std::int64_t, std::string, int, int>, int> seen;
  for (const QualityRow& r : table.rows)
    ++seen[{r.strategy, r.local_steps, r.placement, r.sites, r.expert_overlap}];
  CHECK(seen.size() == table.rows.size());  // no configuration appears twice
  CHECK(row(table, "local_adamw", 32, "fixed", 8, 1).perplexity == 135.74);
  CHECK(row(table, "local_adamw", 64, "random", 8, 2).perplexity == 131.02);
  CHECK(row(table, "local_adamw", 128, "random", 2, 1).plus_minus == 17.88);
  CHECK(row(table, "diloco", 32, "fixed", 4, 2).perplexity == 130.58);
  CHECK(row(table, "diloco", 128, "fixed", 8, 4).plus_minus == 105.02);
  CHECK(row(table, "diloco", 128, "random", 8, 4).perplexity == 424.59);
}

TEST_CASE("full replicas are printed three times and agree, except for a misprint that is kept as printed") {
  const QualityTable exp0 = shipped("paper_exp0.csv"), exp1 = shipped("paper_exp1.csv");
  int compared = 0, different = 0;
  for (const QualityRow& r : exp1.rows) {
    if (r.expert_overlap < r.sites) continue;
    ++compared;
    const QualityRow& full =
        row(exp0, r.strategy, static_cast<int>(r.local_steps), "fixed", r.sites, r.sites);
    if (full.perplexity == r.perplexity && full.plus_minus == r.plus_minus) continue;
    ++different;
    CHECK(r.strategy == "local_adamw");
    CHECK(r.local_steps == 32);
    CHECK(r.placement == "fixed");
    CHECK(r.sites == 8);
    CHECK(r.perplexity == 106.91);
    CHECK(r.plus_minus == 14.99);
    CHECK(r.note.starts_with("as printed"));
    CHECK(full.perplexity == 106.30);
    CHECK(full.plus_minus == 14.92);
    CHECK_FALSE(full.note.empty());
  }
  CHECK(compared == 2 * 3 * 2 * 3);
  CHECK(different == 1);
}

TEST_CASE("a user's own table: mistakes are reported with their line") {
  const std::string top = "# source: ours\n# parameters: 54e6\n# tokens: 1e9\n";
  const std::string header =
      "strategy,local_steps,placement,sites,expert_overlap,perplexity,plus_minus,note\n";
  const auto complaint = [&](const std::string& text) -> std::string {
    try {
      (void)scenario::parse_quality_csv(text, "t.csv");
    } catch (const std::exception& error) {
      return error.what();
    }
    return "";
  };
  CHECK(complaint(top + header + "diloco,32,fixed,4,2,130.5,,a note, with a comma\n").empty());
  CHECK(scenario::parse_quality_csv(top + header + "diloco,32,fixed,4,2,130.5,,a, b\n", "t").rows[0].note ==
        "a, b");
  CHECK(complaint(header + "diloco,32,fixed,4,2,130.5,,\n").starts_with("t.csv:1: source: got none"));
  CHECK(complaint("# source: ours\n" + header + "diloco,32,fixed,4,2,130.5,,\n")
            .starts_with("t.csv:1: parameters"));
  CHECK(complaint(top + "# tokns: 3\n" + header).find("did you mean tokens?") != std::string::npos);
  CHECK(complaint(top + "a,b\n").starts_with("t.csv:4: header: got \"a,b\""));
  CHECK(complaint(top + header).starts_with("t.csv:1: row: got none"));
  CHECK(complaint(top + header + "diloco,32,fixed,4\n").starts_with("t.csv:5: row: got"));
  CHECK(complaint(top + header + "diloco,32,fixed,2,4,130,,\n")
            .starts_with("t.csv:5: expert_overlap: got 4; expected at most the 2 sites"));
  CHECK(complaint(top + header + "diloco,3.5,fixed,4,2,130,,\n")
            .starts_with("t.csv:5: local_steps: got \"3.5\""));
  CHECK(complaint(top + header + "diloco,32,sorted,4,2,130,,\n").starts_with("t.csv:5: placement"));
  CHECK(complaint(top + header + "diloco,32,fixed,4,2,nan,,\n").starts_with("t.csv:5: perplexity"));
}

TEST_CASE("simulate: perplexity with its ± and source if the paper has measured the configuration") {
  const json report = answer("fomoe simulate " + kPaper + "--set strategy.local_steps=32 --output -");
  CHECK(report["quality"]["known"] == true);
  CHECK(report["quality"]["perplexity"] == 131.69);  // DiLoCo, K = 32, fixed, M = 2, O_e = 1
  CHECK(report["quality"]["plus_minus"] == 17.99);
  CHECK(report["quality"]["source"].get<std::string>().find("2606.19025") != std::string::npos);
  const Ran text = run("fomoe simulate " + kPaper + "--set strategy.local_steps=32");
  CHECK(text.out.find("perplexity 131.69 ± 17.99") != std::string::npos);
}

TEST_CASE("simulate: for other configurations the answer says prominently that quality is unknown, and why") {
  const json report = answer("fomoe simulate " + kPaper + "--output -");  // K = 16
  CHECK(report["quality"]["known"] == false);
  CHECK(report["quality"]["reason"] == "local_steps 16; the table has 32, 64, 128");
  CHECK_FALSE(report["quality"].contains("perplexity"));
  const Ran text = run("fomoe simulate " + kPaper);
  CHECK(text.out.find("perplexity: UNKNOWN, because the scenario is outside the range of the quality model: "
                      "local_steps 16") != std::string::npos);
}

TEST_CASE("compare: perplexity in the table, and at equal loss in the verdict") {
  const Ran ran =
      run("fomoe compare " + kPaper +
          "--set prices.gpu_hour=2USD --case \"strategy.method=diloco strategy.local_steps=32\" " +
          "--case \"strategy.local_steps=64 strategy.expert_overlap=1\" --case strategy.local_steps=16");
  CHECK(ran.exit_status == 0);
  CHECK(ran.out.find("118.01 ± 16.06") != std::string::npos);  // DiLoCo, M = 2, K = 32
  CHECK(ran.out.find("144.15 ± 18.66") != std::string::npos);  // O_e = 1, K = 64
  CHECK(ran.out.find(" USD") != std::string::npos);
  CHECK(ran.out.find("Its perplexity is 144.15 ± 18.66") != std::string::npos);
  CHECK(ran.out.find("it does not reach the perplexity 118.01 ± 16.06 of diloco with K = 32") !=
        std::string::npos);
  CHECK(ran.out.find("The quality of 1 of the 3 cases is unknown.") != std::string::npos);
}

TEST_CASE("compare: the verdict at equal loss, for a faster and for a slower case") {
  const std::string ddp_or =
      "fomoe compare " + kPaper + "--case \"strategy.method=diloco strategy.local_steps=32\" ";
  // K = 64 is faster and, with full replicas at M = 2, not worse: 117.94 against 118.01.
  const Ran ahead = run(
      ddp_or + "--case \"strategy.method=diloco strategy.local_steps=64\" --set platform.bandwidth=10Mbps");
  CHECK(ahead.out.find("At equal loss it is still faster: it reaches the perplexity 118.01 ± 16.06 of diloco "
                       "with K = 32") != std::string::npos);
  const Ran behind = run(
      ddp_or + "--case \"strategy.method=diloco strategy.local_steps=128\" --set platform.bandwidth=10Mbps");
  CHECK(behind.out.find("At equal loss it is not known to be faster: it does not reach the perplexity 118.01 "
                        "± 16.06 of diloco with K = 32") != std::string::npos);
}
