// Tables whose columns have other names than ours: exports of wandb and TensorBoard.
#include <doctest/doctest.h>

#include "tests/experiments/step_profiles/imported.hpp"

using namespace fomoe;
using namespace fomoe::tests;
using doctest::Approx;

namespace {
const std::string kBatch = "--gpus 8 --sequences-per-step 64 --sequence-length 2048 ";
}

TEST_CASE("an export of wandb: the columns are listed, and the proposed mapping works") {
  const std::string text =
      "\"Step\",\"run-7 - _step\",\"run-7 - time_metrics/step_time(s)\",\"run-7 - "
      "time_metrics/step_time(s)__MIN\"\n"
      "0,0,12.2,12.2\n1,1,2.5,2.5\n2,2,2.5,2.5\n3,3,2.5,2.5\n4,4,2.5,2.5\n";
  const std::string asked = refusal(text, "csv", kBatch);
  CHECK(asked.starts_with(
      "a.log:1: header: got no column with the times of steps; expected --column with the "));
  CHECK(asked.find(
            "the columns are \"Step\", \"run-7 - _step\", \"run-7 - time_metrics/step_time(s)\", \"run-7 - "
            "time_metrics/step_time(s)__MIN\"") != std::string::npos);
  CHECK(proposal(asked) == "--column 'step_s=run-7 - time_metrics/step_time(s)'");
  const auto profile = profile_of_log(text, "csv", kBatch + proposal(asked));
  CHECK(profile.points[0].samples.size() == 2);
  CHECK(step_of(profile) == Approx(2.5));
}

TEST_CASE("an export of TensorBoard, and one of rates, whose rows have gaps") {
  const std::string board =
      "Wall "
      "time,Step,Value\n1735689600.1,1,9.0\n1735689601.1,2,1.5\n1735689602.1,3,1.5\n1735689603.1,4,1.5\n";
  CHECK(proposal(refusal(board, "csv", kBatch)) == "--column step_s=Value");
  CHECK(step_of(profile_of_log(board, "csv", kBatch + "--column step_s=Value")) == Approx(1.5));
  const std::string rates =
      "\"Step\",\"a - throughput(tps)\",\"a - loss\"\n1,,9\n2,512,\n3,8192,8\n4,8192,\n5,8192,7\n6,8192,6\n";
  const std::string mapping = proposal(refusal(rates, "csv", kBatch));
  CHECK(mapping == "--column 'tokens_per_s_per_gpu=a - throughput(tps)'");
  CHECK(step_of(profile_of_log(rates, "csv", kBatch + mapping)) ==
        Approx(2.0));  // 8 · 2,048 tokens at 8,192 per second
  const std::string own = "step,loss,time_s\n1,9,3\n2,8,2\n3,7,2\n4,6,2\n";
  CHECK(proposal(refusal(own, "csv", kBatch)) == "--column step_s=time_s");
  const std::string ms = "iteration,iteration_time_ms\n1,500\n2,500\n3,500\n4,500\n";
  CHECK(step_of(profile_of_log(ms, "csv", kBatch + proposal(refusal(ms, "csv", kBatch)))) == Approx(0.5));
}

TEST_CASE("wrong mappings: the message has the columns, and its proposal works") {
  const std::string text = "Step,Value\n1,2\n2,2\n3,2\n4,2\n";
  const std::string unknown = refusal(text, "csv", kBatch + "--column step_s=value");
  CHECK(unknown.find(
            "a.log:1: --column step_s: got \"value\"; expected one of the columns \"Step\", \"Value\"") == 0);
  CHECK(step_of(profile_of_log(text, "csv", kBatch + proposal(unknown))) == Approx(2.0));
  CHECK(refusal(text, "csv", kBatch + "--column seconds=Value")
            .starts_with("fomoe: --column: got \"seconds\""));
  CHECK(refusal(text, "csv", kBatch + "--column Value")
            .starts_with("fomoe: --column: got \"Value\"; expected a quantity"));
  CHECK(refusal(text, "csv", kBatch + "--column sequences=Value")
            .starts_with("a.log:1: --column: got 0 columns with times of steps"));
  CHECK(refusal(text, "megatron", kBatch + "--column step_s=Value")
            .starts_with("fomoe: --column: got this option with --from megatron"));
}
