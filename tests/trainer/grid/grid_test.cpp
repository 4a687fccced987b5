// Tests of grids of training runs: the list of runs, their ids, and the tables of their results.
#include <cmath>
#include <filesystem>
#include <fstream>

#include "costmodel/plan/method.hpp"
#include "experiments/files/quality_csv.hpp"
#include "platforms/support/input_error.hpp"
#include "trainer/grid/grid_tables.hpp"
// after LibTorch's headers, see there
#include "tests/trainer/support.hpp"

using namespace fomoe::trainer;

namespace {

const std::string kScenario = FOMOE_SOURCE_DIR "/experiments/scenarios/tiny-training.toml";

// Writes a file for the duration of a test.
class Written {
 public:
  Written(const std::string& name, const std::string& text)
      : path_(std::filesystem::temp_directory_path() / (std::to_string(::getpid()) + name)) {
    std::ofstream(path_) << text;
  }
  ~Written() { std::filesystem::remove(path_); }
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

Grid grid_of(const std::string& rest, const std::vector<std::string>& overrides = {}) {
  const Written file("grid.toml", "scenario = \"" + kScenario + "\"\n" + rest);
  return read_grid(file.path(), overrides);
}

std::string refused(const std::string& rest) {
  try {
    grid_of(rest);
    return "accepted";
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

constexpr const char* kTwoTables =
    "vary = [\"seed=42,123\"]\n"
    "[[runs]]\nset = [\"strategy.method=local_adamw\"]\n"
    "[[runs]]\nvary = [\"strategy.expert_overlap=1,2\", \"strategy.placement=fixed,random\"]\n";

GridResult result_of(double loss, double site_loss) {
  GridResult result;
  result.loss = loss;
  result.mean_site_loss = site_loss;
  result.router_entropy = 1.0 / 3;
  result.device = "a CPU, \"fast\"";
  result.code = "0.1.0";
  return result;
}

}  // namespace

TEST_CASE("a grid makes all combinations of a table, and all tables for a seed before the next seed") {
  const Grid grid = grid_of(kTwoTables);
  REQUIRE(grid.runs.size() == 10);
  CHECK(grid.keys ==
        std::vector<std::string>{"seed", "strategy.method", "strategy.expert_overlap", "strategy.placement"});
  CHECK(grid.runs[0].scenario.strategy.method->name == "local_adamw");
  CHECK(value_in(grid.runs[1], "strategy.expert_overlap") == "1");
  CHECK(value_in(grid.runs[1], "strategy.placement") == "fixed");
  CHECK(value_in(grid.runs[2], "strategy.placement") == "random");
  CHECK(value_in(grid.runs[0], "strategy.placement").empty());
  for (std::size_t i = 0; i < 10; ++i) CHECK(grid.runs[i].scenario.seed == (i < 5 ? 42 : 123));
}

TEST_CASE("the id of a run depends on what is trained, not on titles or on how the values are given") {
  const Grid grid = grid_of(kTwoTables);
  for (std::size_t i = 0; i < grid.runs.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) CHECK(grid.runs[i].id != grid.runs[j].id);
  }
  // The scenario has O_e = 2 and random placement: the run that sets both to what they are is there once.
  CHECK(grid_of("[[runs]]\n[[runs]]\nset = [\"strategy.expert_overlap=2\"]\n").runs.size() == 1);
  CHECK(grid_of("[[runs]]\n").runs[0].id == grid_of("[[runs]]\n", {"name=another"}).runs[0].id);
  CHECK(grid_of("[[runs]]\n").runs[0].id != grid_of("[[runs]]\n", {"trainer.learning_rate=0.02"}).runs[0].id);
  CHECK(grid_of("[[runs]]\nvary = [\"trainer.data=a.bin,b.bin\"]\n").runs.size() == 2);
  CHECK(grid_of("[[runs]]\n").runs[0].id !=
        grid_of("[[runs]]\n", {"trainer.validation_data=a.bin"}).runs[0].id);
}

TEST_CASE("wrong grid files are refused with the line, before anything is trained") {
  CHECK(refused("").find("runs: got no [[runs]]") != std::string::npos);
  CHECK(refused("[[runs]]\nvarry = [\"seed=1\"]\n").find("grid.toml:3: runs.varry: got an unknown key") !=
        std::string::npos);
  CHECK(refused("[[runs]]\nvary = [\"strategy.expert_overlap=1,5\"]\n").find("is not possible") !=
        std::string::npos);
  CHECK(
      refused("[[runs]]\nvary = [\"strategy.no_such=1\"]\n").find("grid.toml:3: --vary strategy.no_such=1") !=
      std::string::npos);
  CHECK(refused("[[runs]]\nset = [\"trainer.validation_sequences=0\"]\n")
            .find("grid.toml:3: a run of this table is not possible: trainer.validation_sequences: "
                  "got 0; expected at least 1") != std::string::npos);
  CHECK(refused("[[runs]]\nset = [\"trainer.schedule=wsd\"]\n").find("without decay_steps") !=
        std::string::npos);
}

TEST_CASE("rows of a grid are read again with the same bits, also of a run that diverged") {
  const Grid grid = grid_of(kTwoTables);
  GridResults results(grid.runs.size());
  results[0] = result_of(1.0 / 3, 2.0 / 7);
  results[3] = result_of(HUGE_VAL, HUGE_VAL);
  const Written file("rows.csv", rows_csv(grid, results));
  const auto rows = read_rows(file.path());
  REQUIRE(rows.size() == 2);
  CHECK(rows.at(grid.runs[0].id).loss == 1.0 / 3);
  CHECK(rows.at(grid.runs[0].id).mean_site_loss == 2.0 / 7);
  CHECK(rows.at(grid.runs[0].id).router_entropy == 1.0 / 3);
  CHECK(rows.at(grid.runs[0].id).device == "a CPU, \"fast\"");
  CHECK(std::isinf(rows.at(grid.runs[3].id).loss));
  const Written wrong("rows.csv", "run,loss\n0123,low\n");
  CHECK_THROWS_AS(read_rows(wrong.path()), fomoe::FileError);
  CHECK(read_rows("/nonexistent/rows.csv").empty());
}

TEST_CASE("the summary has mean and spread over seeds, and the quality table what the planner can use") {
  const Grid grid = grid_of(kTwoTables);
  GridResults results(grid.runs.size());
  results[0] = result_of(std::log(10.0), 0);  // full replicas
  results[5] = result_of(std::log(14.0), 0);
  results[1] = result_of(std::log(20.0), 0);  // O_e = 1, fixed: one seed
  const std::string summary = summary_csv(grid, results);
  CHECK(summary.find("perplexity_mean,perplexity_std") != std::string::npos);
  CHECK(summary.find("local_adamw,4,16,4,,,false,") != std::string::npos);
  const fomoe::costmodel::QualityTable table =
      fomoe::scenario::parse_quality_csv(quality_csv(grid, results, "this test"), "quality.csv");
  REQUIRE(table.rows.size() == 2);
  CHECK(table.rows[0].strategy == "local_adamw");
  CHECK(table.rows[0].expert_overlap == 4);
  CHECK(table.rows[0].perplexity == doctest::Approx(12));
  CHECK(table.rows[0].plus_minus == doctest::Approx(std::sqrt(8.0)));
  CHECK(table.rows[1].strategy == "diloco");  // fomoe with Nesterov
  CHECK(table.rows[1].placement == "fixed");
  CHECK(table.rows[1].plus_minus < 0);
}

TEST_CASE("runs that diverged have no spread, and are not in the quality table, also not as its first ones") {
  const Grid grid = grid_of(kTwoTables);
  GridResults results(grid.runs.size());
  results[0] = result_of(HUGE_VAL, HUGE_VAL);  // full replicas: one of two seeds
  results[5] = result_of(std::log(14.0), 0);
  results[1] = result_of(std::log(20.0), 0);
  results[6] = result_of(std::log(24.0), 0);
  const std::string summary = summary_csv(grid, results);
  CAPTURE(summary);
  CHECK(summary.find(",inf,,") != std::string::npos);
  CHECK(summary.find("nan") == std::string::npos);
  const std::string quality = quality_csv(grid, results, "this test");
  CAPTURE(quality);
  CHECK(quality.find("# note: 2 runs are left out: they diverged") != std::string::npos);
  const fomoe::costmodel::QualityTable table = fomoe::scenario::parse_quality_csv(quality, "quality.csv");
  REQUIRE(table.rows.size() == 1);
  CHECK(table.rows[0].strategy == "diloco");
  CHECK(table.rows[0].perplexity == doctest::Approx(22));
  results[1] = results[6] = std::nullopt;
  CHECK(quality_csv(grid, results, "this test").empty());
}

TEST_CASE("the data of a run are those of the training, also if it was validated on others") {
  const std::string report = R"({
    "wall_clock_s": 1, "run": {"whole": true, "code": ""},
    "provenance": [{"what": "times", "origin": "measured", "detail": "this run on a CPU"},
                   {"what": "training data", "origin": "assumed", "detail": "synthetic: a Markov chain"}],
    "validation": {"data": "corpus/held-out.bin, 5,000 tokens", "loss": 2, "mean_site_loss": 2, "sites": []}})";
  const Written file("other-data.json", report);
  CHECK(read_result(file.path()).value().data == "synthetic: a Markov chain");
}

TEST_CASE("the result of a run: losses, and means of the routers' figures over sites and layers") {
  const std::string report = R"({
    "wall_clock_s": 12.5, "provenance": [{"what": "times", "origin": "measured", "detail": "this run on a CPU"}],
    "run": {"whole": false, "code": "1.0 abc"},
    "validation": {"loss": 2, "mean_site_loss": 3, "sites": [
      {"routers": [{"entropy": 1, "load_cv": 0.5, "ghost_share": 0}, {"entropy": 2, "load_cv": 0.25, "ghost_share": 0.5}]},
      {"routers": [{"entropy": 4, "load_cv": 1, "ghost_share": 0.25}, {"entropy": 5, "load_cv": 0.25, "ghost_share": 0.25}]}]}})";
  const Written file("report.json", report);
  const std::optional<GridResult> result = read_result(file.path());
  REQUIRE(result.has_value());
  CHECK(result->loss == 2);
  CHECK(result->mean_site_loss == 3);
  CHECK(result->router_entropy == 3);
  CHECK(result->load_cv == 0.5);
  CHECK(result->ghost_share == 0.25);
  CHECK(result->seconds == 12.5);
  CHECK(result->resumed);
  CHECK(result->code == "1.0 abc");
  CHECK(result->device == "a CPU");
  CHECK_FALSE(read_result(file.path() + ".missing").has_value());
  const Written torn("torn.json", report.substr(0, 200));
  CHECK_FALSE(read_result(torn.path()).has_value());
}

TEST_CASE("a grid's scenario may name a step profile that is not there yet") {
  std::ifstream file(kScenario);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::string step_time = "step_time = \"50ms\"";
  const std::size_t begin = text.find(step_time);
  REQUIRE(begin != std::string::npos);
  const Written scenario("untimed.toml",
                         text.replace(begin, step_time.size(), "profile = \"no-such-profile.json\""));
  const Written grid("untimed-grid.toml",
                     "scenario = \"" + scenario.path() + "\"\n[[runs]]\nvary = [\"seed=1,2\"]\n");
  CHECK(read_grid(grid.path(), {}).runs.size() == 2);
}
