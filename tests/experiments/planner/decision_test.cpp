// Tests which finalists the answer of a plan lists.
#include "experiments/planner/decision.hpp"

#include <doctest/doctest.h>

#include <utility>
#include <vector>

#include "costmodel/methods/all.hpp"

using namespace fomoe;
using namespace fomoe::planner;

TEST_CASE("decide: cheaper rows are listed although one that is slower costs less, and a faster one more") {
  // (time, cost), from less to more risk; the cost is minimised, and the first is recommended.
  const std::vector<std::pair<double, double>> amounts = {
      {400, 10}, {100, 90}, {100, 50}, {200, 60}, {150, 30}};
  Answer answer;
  answer.finalists.resize(amounts.size() + 1);  // [0] is the unchanged scenario
  for (std::size_t i = 0; i < amounts.size(); ++i) {
    Finalist& one = answer.finalists[i + 1];
    one.scenario.strategy.method = costmodel::find_method("diloco");
    one.candidate.quality.local_steps = static_cast<double>(i + 1);
    one.simulated = {amounts[i].first, amounts[i].second, 0};
    one.value = amounts[i].second;
  }
  AnswerOptions options;
  options.screening.minimise = Measure::cost;
  decide(answer, options);
  // Row 4 takes twice as long as row 3 and costs more.
  CHECK(answer.chosen == std::vector<std::size_t>{1, 2, 3, 5});
  CHECK(answer.riskier == 3);
}
