// Tests of the progress line of a run.
#include <chrono>
#include <cmath>
#include <sstream>
#include <thread>

#include "costmodel/inputs/scenario.hpp"
#include "costmodel/model/flops.hpp"
#include "tests/trainer/run/training_case.hpp"
#include "trainer/run/run_log.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;
namespace costmodel = fomoe::costmodel;

namespace {

double number_before(const std::string& text, const std::string& unit) {
  const std::size_t end = text.find(unit);
  REQUIRE_MESSAGE(end != std::string::npos, text);
  return std::stod(text.substr(text.rfind("· ", end) + std::string("· ").size()).substr(0, 12));
}

double number_after(const std::string& text, const std::string& name) {
  const std::size_t begin = text.find(name);
  REQUIRE_MESSAGE(begin != std::string::npos, text);
  return std::stod(text.substr(begin + name.size()));
}

}  // namespace

TEST_CASE("the last progress line: rounds, steps, loss, rate, MFU, exposed communication and the time left") {
  costmodel::Scenario scenario = training_scenario("diloco", 2);  // 12 steps
  // The rate of the device is such that a run of 0.2 s has an MFU of 100 %.
  const double flops = costmodel::flops_per_token(scenario).total();
  const double tokens_of_run = 6.0 * 8 * static_cast<double>(scenario.model.sequence_length);
  scenario.peak_flops = flops * tokens_of_run / 0.2 / 2;  // of the GPU at each of the two sites
  const costmodel::Plan plan = costmodel::make_plan(scenario);
  std::ostringstream out;
  const auto begin = std::chrono::steady_clock::now();
  TrainingProgress progress(out, /*terminal=*/false, scenario, plan, 0, [] { return 0.03; });
  for (int step = 0; step < 6; ++step) {
    StepRecord record;
    record.step = step;
    record.loss = at::scalar_tensor(2.5, at::kDouble);
    record.skipped = step == 3;
    progress.step(record);
  }
  progress.round(1);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  CHECK(out.str().empty());  // nothing is printed in the first two seconds
  progress.end();
  const double elapsed_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const std::string line = out.str();
  CAPTURE(line);
  CHECK(line.starts_with("round 2/3 · step 6/12 · loss 2.500 · 1 skipped · "));
  CHECK(line.ends_with(" s\n"));
  const double tokens_per_s = number_before(line, " tokens/s"), least = tokens_of_run / elapsed_s;
  CHECK(tokens_per_s > 0.99 * least);
  CHECK(tokens_per_s < 1.05 * tokens_of_run / 0.1);
  // The rate is printed with three digits, that is within 0.5 %, and the shares with one decimal.
  const auto near = [](double printed, double expected) {
    return std::abs(printed - expected) <= 0.005 * expected + 0.051;
  };
  const double mfu = 100 * 0.2 * tokens_per_s / tokens_of_run;
  CHECK(near(number_after(line, "· MFU "), mfu));
  const double exposed = 100 * 0.03 * tokens_per_s / tokens_of_run;
  CHECK(near(number_after(line, "· exposed "), exposed));
}
