// Tests that the commands in the READMEs run, and that the answers printed there are their answers.
#include <doctest/doctest.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/experiments/run_fomoe.hpp"

namespace {

using namespace fomoe::tests;

/// A ```bash … ``` block, and the ```text … ``` block that directly follows it.
struct Example {
  std::vector<std::string> commands;  // one line each, without trailing comments
  std::vector<std::string> answer;    // output of the last command
};

std::string without_remark(std::string line) {
  // A trailing comment follows spaces. No command has " #" elsewhere.
  if (const std::size_t at = line.find(" #"); at != std::string::npos) line.resize(at);
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

std::vector<Example> read_examples(const std::string& text) {
  std::vector<Example> examples;
  std::istringstream lines(text);
  std::string kind;
  bool follows = false;  // a text block here is the last example's answer
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) {
      kind = line.substr(3);
      if (kind == "bash") examples.emplace_back();
      continue;
    }
    if (kind == "bash") {
      line = without_remark(line);
      while (line.ends_with('\\')) {
        std::string more;
        std::getline(lines, more);
        line = line.substr(0, line.size() - 1) + without_remark(more);
      }
      if (!line.empty()) examples.back().commands.push_back(line);
      follows = true;
    } else if (kind == "text") {
      if (follows) examples.back().answer.push_back(line);
    } else if (!line.empty()) {
      follows = false;
    }
  }
  return examples;
}

}  // namespace

TEST_CASE("the `fomoe` commands of the READMEs run, and their answers are the printed ones") {
  const Folder folder;
  for (const char* name : {"experiments", "platforms", "tools"})
    std::filesystem::create_directory_symlink(source_dir() + '/' + name, folder / name);
  // Files that the reader must supply: a log of a training run, and a measured run.
  std::string log;
  for (int step = 1; step <= 9; ++step)
    log += "[titan] 2025-06-16 22:29:08,735 - root - INFO - step:  " + std::to_string(step) +
           "  loss: 10.1384  grad_norm:  1.0041  memory: 49.66GiB(62.28%)  tps: 4,096  tflops: 237.22  mfu: "
           "23.99%\n";
  write_all(folder / "train.log", log);
  std::string jobs;  // two runs that were appended to one file
  for (const int gpus : {4, 8}) {
    jobs +=
        "[titan] - root - INFO - CUDA capacity: NVIDIA H100 80GB HBM3 with 79.10GiB memory\n"
        "[titan] - root - INFO - Building 1-D device mesh with ['dp_shard'], [" +
        std::to_string(gpus) +
        "]\n[titan] - root - INFO - Trainer is initialized with local batch size 8, global batch size 64, "
        "gradient "
        "accumulation steps 1, sequence length 2048, total steps 9 (warmup 2)\n" +
        log;
  }
  write_all(folder / "jobs.log", jobs);
  write_all(folder / "wandb.csv",
            "\"Step\",\"run-1 - timing/step_time\"\n0,12.2\n1,2.1\n2,2.1\n3,2.1\n4,2.1\n");
  std::filesystem::copy_file(source_dir() + "/experiments/validation/runs/ddp-near-small-k1.json",
                             folder / "measured.json");
  int ran_commands = 0, checked_answers = 0;
  std::vector<Example> examples;
  for (const char* page : {"/README.md", "/experiments/README.md", "/experiments/models/README.md",
                           "/experiments/measured/README.md", "/trainer/README.md"}) {
    for (Example& example : read_examples(read_all(source_dir() + page)))
      examples.push_back(std::move(example));
  }
  for (const Example& example : examples) {
    Ran ran;
    for (const std::string& command : example.commands) {
      if (!command.starts_with("$fomoe ")) continue;
      CAPTURE(command);
      write_all(folder / "command.sh", "fomoe=fomoe\n" + command + '\n');
      ran = run_in(folder.path(), "bash -e command.sh");
      CHECK_MESSAGE(ran.exit_status == 0, ran.err);
      ++ran_commands;
    }
    for (const std::string& line : example.answer) {
      if (line == "…") continue;  // stands for lines that are left out
      CAPTURE(example.commands.back());
      CHECK_MESSAGE(ran.out.find(line) != std::string::npos, line << "\nis not in\n" << ran.out);
    }
    checked_answers += example.answer.empty() ? 0 : 1;
  }
  CHECK(ran_commands >= 30);
  CHECK(checked_answers >= 4);
}
