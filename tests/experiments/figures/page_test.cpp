// Tests the pages of figures: every figure has one, with its claims, commands and rows.
#include <doctest/doctest.h>

#include "experiments/figures/page/figure_page.hpp"
#include "experiments/figures/trained/claims.hpp"
#include "experiments/figures/trained/perplexity_figures.hpp"

using namespace fomoe::figures;

namespace {

const Experiment kExample = {"fig-x", "losses of two kinds", nullptr};

Figure example(std::size_t rows) {
  Figure figure;
  figure.columns = {"kind", "loss"};
  for (std::size_t r = 0; r < rows; ++r)
    figure.rows.push_back({std::string("a|b"), static_cast<double>(r) + 0.123456789});
  figure.notes = {"The data differ."};
  figure.again = "fomoe-train run S.toml   # a minute\n";
  return figure;
}

}  // namespace

TEST_CASE("a page has the commands for a point, what differs, assumptions and rows, with bars escaped") {
  const std::string page = page_text(kExample, example(2), {{"mfu", 0.4}, {"rows", ""}});
  for (const char* part :
       {"# fig-x\nlosses of two kinds; FoMoE, arXiv 2606.19025.\n",
        "## One point again\n```sh\nfomoe-train run S.toml   # a minute\nfomoe reproduce fig-x\n```\n",
        "- The data differ.\n", "| mfu | 0.4 |\n",
        "| kind | loss |\n| --- | --- |\n| a\\|b | 0.12346 |\n| a\\|b | 1.1235 |\n"}) {
    CAPTURE(part);
    CHECK(page.find(part) != std::string::npos);
  }
  CHECK(page.find("## Claims") == std::string::npos);  // it makes none
  CHECK(page.find("more rows") == std::string::npos);
}

TEST_CASE("a page with many rows shows the first ones, and says where the others are") {
  const std::string page = page_text(kExample, example(203), Json::object());
  CHECK(page.find("3 more rows are in fig-x.csv.") != std::string::npos);
  CHECK(page.find("| 199.12 |") != std::string::npos);
  CHECK(page.find("| 200.12 |") == std::string::npos);
  CHECK(page.find("## Assumptions") == std::string::npos);
}

TEST_CASE("a claim stands with the paper's verdict, ours, its interval and seeds") {
  Figure figure = example(1);
  Effect printed{3, 0.1, -1, 1}, ours{5, -0.05, 0.02, 3};
  Claim of_paper{"a claim", "a ratio", printed, Verdict::holds};
  add_claims(figure, "paper", {of_paper});
  add_claims(figure, "proxy", {claim_above_zero("a claim", "a ratio", ours)});
  const std::string page = page_text(kExample, figure, Json::object());
  CAPTURE(page);
  CHECK(page.find("| a claim | holds +10.5 % | does not hold -4.9 % | -6.8 % to -3.0 % | 3 |\n") !=
        std::string::npos);
}
