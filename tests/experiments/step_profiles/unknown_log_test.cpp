// Logs that no reader understands: the lines that look like steps, and commands that import them.
#include <doctest/doctest.h>

#include <utility>
#include <vector>

#include "tests/experiments/step_profiles/imported.hpp"

using namespace fomoe;
using namespace fomoe::tests;
using doctest::Approx;

namespace {

/// Runs the two commands that the message proposes in the folder of the log.
costmodel::StepProfile as_proposed(const std::string& text, const std::string& options) {
  const Folder folder;
  const Ran refused = import_text(folder, text, "torchtitan", options);
  CHECK(refused.exit_status == 2);
  const std::string label = "any log can be imported as CSV; for example\n";
  const std::size_t at = refused.err.find(label);
  REQUIRE_MESSAGE(at != std::string::npos, refused.err);
  std::string commands = refused.err.substr(at + label.size());
  write_all(folder / "try.sh", "set -e\n" + commands);
  const Ran ran = run_in(folder.path(), "bash try.sh");
  REQUIRE_MESSAGE(ran.exit_status == 0, (commands + ran.err));
  return scenario::read_step_profile(folder / "p.json");
}

}  // namespace

TEST_CASE("a log that states milliseconds: its lines are shown, and the proposed commands import them") {
  std::string text = "number of parameters: 124M\n";
  for (int i = 0; i < 6; ++i)
    text += "step " + std::to_string(i) +
            " | loss: 10.9 | lr 6e-04 | norm: 15.2 | dt: 338.50ms | tok/sec: 96,732\n";
  const std::string message = refusal(text, "torchtitan", "");
  CHECK(message.find(
            "lines that look like steps:\n  2: step 0 | loss: 10.9 | lr 6e-04 | norm: 15.2 | dt: 338.50ms") !=
        std::string::npos);
  const auto profile = as_proposed(text, "--model small");
  CHECK(step_of(profile) == Approx(0.3385));
  CHECK(profile.points[0].samples.size() == 3);
}

TEST_CASE("other spellings of durations") {
  const std::vector<std::string> lines = {
      "iter 7: loss 4.0863, time 561.94ms, mfu 21.3%",
      "2026-04-01 14:06:36 | INFO | step 00000007/00000015 | step-time 0.56194 sec | cross-entropy-loss "
      "2.6636",
      "[Step 7] train_loss=2.31 step_time_ms=561.94 tokens/s=8192",
      "Iter 7: loss 2.3, took 0.56194 s",
      "steps: 7 loss: 9.2 iter time (s): 0.56194 samples/sec: 3.1",
      "{\"step\": 7, \"loss\": 2.3, \"iteration_time\": 0.56194}",
  };
  for (const std::string& line : lines) {
    CAPTURE(line);
    std::string text;
    for (int i = 0; i < 5; ++i) text += line + "\n";
    CHECK(step_of(as_proposed(text, "--model small --gpus 4")) == Approx(0.56194));
  }
}

TEST_CASE("a time per step is preferred to totals, to what is left and to times since the start") {
  struct Case {
    const char* line;  // {} is 1, 2, … and [] the time since the start
    double step_s;
  };
  const std::vector<Case> cases = {
      {"step:{}/1375 train_time:[]ms step_avg:140.00ms", 0.14},
      {"{}/1000 ======== 50s 500ms/step - loss: 1.2", 0.5},
      {"  1%| | {}/1000 [00:50<1:20:00,  5.00s/it]", 5},
      {"{'loss': 2.5, 'step': {}, 'elapsed': [], 'step_time': 0.25}", 0.25},
      {"[train.py:30] step {} of 9 took 0.75 s, elapsed = []s", 0.75},
  };
  for (const Case& one : cases) {
    CAPTURE(one.line);
    std::string text;
    for (int i = 1; i <= 6; ++i) {
      std::string line = one.line;
      for (const auto& [sign, value] : {std::pair{"{}", i}, std::pair{"[]", 140 * i}}) {
        if (const std::size_t at = line.find(sign); at != std::string::npos)
          line.replace(at, 2, std::to_string(value));
      }
      text += line + "\n";
    }
    text += "{'train_runtime': 5000.0, 'train_steps_per_second': 0.2}\n";
    CHECK(step_of(as_proposed(text, "--model small --gpus 4")) == Approx(one.step_s));
  }
}

TEST_CASE("where no number is certain to be the time of a step, the message says so and proposes none") {
  const std::vector<std::string> logs = {
      "[2023-05-01 12:00:00,124] [INFO] [timer.py:199:stop] micro_step={}/global_step={}, "
      "CurrSamplesPerSec=10.2\n",
      "[batch={}/4800]:\n\t Train time/batch: {}\n\t Train throughput/batches_per_sec: 0.25\n",
      "step = {}, loss = 2.1, steps/sec = 2.5, elapsed = {}.5s\n",
      "step {} loss 2.1 time {}.25\n",
      "{'loss': 2.5, 'step': {}, 'train_runtime': 5000.0}\n",
  };
  for (const std::string& log : logs) {
    CAPTURE(log);
    std::string text;
    for (int i = 1; i <= 6; ++i) {
      std::string lines = log;
      for (std::size_t at = lines.find("{}"); at != std::string::npos; at = lines.find("{}"))
        lines.replace(at, 2, std::to_string(i));
      text += lines;
    }
    const std::string message = refusal(text, "torchtitan", "");
    CHECK(has(message, "none of their numbers is certain to be the time of one step"));
    CHECK_FALSE(has(message, "sed -nE"));
    CHECK(as_proposed(text, "--model small").points[0].samples.size() == 2);
  }
}

TEST_CASE(
    "a log without durations: the command that writes a CSV by hand works; a text without steps has none") {
  const std::string text = "step 1 loss 9.0\nstep 2 loss 8.0\n";
  CHECK(as_proposed(text, "--model small").points[0].samples.size() == 2);
  CHECK(refusal("hello\n", "torchtitan", "").find("look like steps") == std::string::npos);
}
