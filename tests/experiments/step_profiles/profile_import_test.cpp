// Tests of importing step times from other programs' logs. The sample logs are written by hand in the real
// formats. Their times are round numbers, so that the expected values can be checked by eye.
#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "experiments/files/step_profile_io.hpp"
#include "experiments/step_profiles/sha256.hpp"
#include "tests/experiments/run_fomoe.hpp"

using namespace fomoe;
using namespace fomoe::tests;
using doctest::Approx;

namespace {

const std::string kLogs = source_dir() + "/tests/experiments/data/logs/";
const std::string kSmallProfile = " --model small --sequence-length 2048 --dtype bf16 --output p.json ";
const std::string kDevice = " --device \"NVIDIA H100 80GB HBM3\" ";

Ran import_log(const Folder& folder, const std::string& log, const std::string& format,
               const std::string& options) {
  return run_in(folder.path(), "fomoe profile import " + log + " --from " + format + kSmallProfile + options);
}

costmodel::StepProfile imported(const std::string& log, const std::string& format,
                                const std::string& options) {
  const Folder folder;
  const Ran ran = import_log(folder, kLogs + log, format, options);
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
  return scenario::read_step_profile(folder / "p.json");
}

double whole(const costmodel::StepSample& sample) {
  return sample.forward_s + sample.backward_s + sample.optimizer_s;
}

/// Returns the message about importing `text`, without the path.
std::string complaint(const std::string& text, const std::string& format, const std::string& options) {
  const Folder folder;
  write_all(folder / "a.log", text);
  const Ran ran = import_log(folder, "a.log", format, options);
  CHECK(ran.exit_status == 2);
  CHECK(ran.out.empty());
  CHECK_FALSE(std::filesystem::exists(folder / "p.json"));
  return ran.err;
}

}  // namespace

TEST_CASE("SHA-256: the examples of FIPS 180-4, and distinct digests for every length around a block's end") {
  CHECK(step_profiles::sha256_hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(step_profiles::sha256_hex("abc") ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(step_profiles::sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(step_profiles::sha256_hex(std::string(1000000, 'a')) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("torchtitan: tokens/s per GPU become seconds; colours, other ranks and validation are ignored") {
  // 16 sequences of 2,048 tokens on 4 GPUs are 8,192 tokens per GPU: 2 s at 4,096 tokens/s, 1 s at 8,192.
  // Step 1 compiles and is warm-up; rank 1 repeats step 10; `validate step` is not training.
  const auto profile =
      imported("torchtitan.log", "torchtitan", "--gpus 4 --sequences-per-step 16 --warmup 1" + kDevice);
  REQUIRE(profile.points.size() == 1);
  const costmodel::ProfilePoint& point = profile.points[0];
  CHECK(point.timed_sequences() == 4);
  CHECK(point.local_experts == 8);
  REQUIRE(point.samples.size() == 2);
  CHECK(whole(point.samples[0]) == Approx(2.0));
  CHECK(whole(point.samples[1]) == Approx(1.0));
  // The split of a step is assumed: one third forward, the rest backward.
  CHECK(point.samples[1].forward_s == Approx(1.0 / 3));
  CHECK(point.samples[1].optimizer_s == 0);
  CHECK(profile.device_name == "NVIDIA H100 80GB HBM3");
  REQUIRE(profile.origin);
  CHECK(profile.origin->kind == "torchtitan");
  CHECK(profile.origin->file == "torchtitan.log");
  CHECK(profile.origin->lines == "line 4 to 8, 2 steps used");
  CHECK(profile.origin->sha256 == step_profiles::sha256_hex(read_all(kLogs + "torchtitan.log")));
  CHECK(profile.origin->warmup_dropped == 1);
  CHECK(profile.origin->gpus == 4);
  CHECK(profile.origin->whole_steps);
}

TEST_CASE("Megatron-LM: milliseconds; each global batch size is a point of its own, with its own warm-up") {
  const auto profile = imported("megatron.log", "megatron", "--gpus 8 --warmup 1" + kDevice);
  REQUIRE(profile.points.size() == 2);
  CHECK(profile.points[0].timed_sequences() == 1);  // 8 sequences on 8 GPUs
  REQUIRE(profile.points[0].samples.size() == 2);   // from iterations 1 to 3
  CHECK(whole(profile.points[0].samples[0]) == Approx(0.5));
  CHECK(whole(profile.points[0].samples[1]) == Approx(0.48));
  CHECK(profile.points[1].timed_sequences() == 2);
  REQUIRE(profile.points[1].samples.size() == 1);  // from iterations 4 and 5
  CHECK(whole(profile.points[1].samples[0]) == Approx(0.94));
}

TEST_CASE("nanotron: numbers with three digits and a suffix") {
  const auto profile = imported("nanotron.log", "nanotron", "--gpus 8 --warmup 0" + kDevice);
  REQUIRE(profile.points.size() == 1);
  CHECK(profile.points[0].timed_sequences() == 8);  // 64 sequences on 8 GPUs
  REQUIRE(profile.points[0].samples.size() == 3);
  CHECK(whole(profile.points[0].samples[0]) == Approx(11.5));
  CHECK(whole(profile.points[0].samples[1]) == Approx(2.3));
  CHECK(whole(profile.points[0].samples[2]) == Approx(0.845));
}

TEST_CASE(
    "a Kineto trace: a step lasts from its first kernel to the next step's, on the GPU if there is one") {
  const auto profile = imported("kineto.json", "kineto", "--gpus 1 --sequences-per-step 8 --warmup 0");
  REQUIRE(profile.points.size() == 1);
  REQUIRE(profile.points[0].samples.size() == 2);  // the end of the last step is unknown
  CHECK(whole(profile.points[0].samples[0]) ==
        Approx(0.42));  // 425,000 - 5,000 µs, whatever runs on other streams
  CHECK(whole(profile.points[0].samples[1]) == Approx(0.41));
  CHECK(profile.device_name == "NVIDIA H100 80GB HBM3");  // from the trace
  CHECK(profile.origin->lines == "ProfilerStep#3 to 4, 2 steps used");
}

TEST_CASE("a Kineto trace without a GPU has its steps on the CPU's thread, counted from 0") {
  const Folder folder;
  write_all(folder / "cpu.json", R"([{"ph": "X", "name": "ProfilerStep#0", "ts": 0, "dur": 5},
    {"ph": "X", "name": "ProfilerStep#1", "ts": 250000, "dur": 5}, {"ph": "X", "name": "ProfilerStep#7", "ts": 9e6}])");
  const Ran ran = import_log(folder, "cpu.json", "kineto",
                             "--gpus 1 --sequences-per-step 8 --warmup 0 --device-kind cpu --device laptop");
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
  const auto profile = scenario::read_step_profile(folder / "p.json");
  REQUIRE(profile.points[0].samples.size() == 1);  // steps 0 to 1 alone; 1 and 7 are not consecutive
  CHECK(whole(profile.points[0].samples[0]) == Approx(0.25));
}

TEST_CASE("CSV: the three parts as timed, and a point for each count of experts") {
  const auto profile = imported("steps.csv", "csv", "--gpus 1 --warmup 1" + kDevice);
  REQUIRE(profile.points.size() == 2);
  CHECK(profile.points[0].local_experts == 4);
  CHECK(profile.points[0].samples.size() == 1);
  CHECK(profile.points[1].local_experts == 8);
  REQUIRE(profile.points[1].samples.size() == 2);
  CHECK(profile.points[1].samples[0].backward_s == 0.3);
  CHECK(profile.points[1].samples[0].optimizer_s == 0.02);
  CHECK_FALSE(profile.origin->whole_steps);
}

TEST_CASE("a scenario with an imported profile runs, and its report has the origin of the step time") {
  const Folder folder;
  const Ran import = import_log(folder, kLogs + "megatron.log", "megatron", "--gpus 8 --warmup 1" + kDevice);
  REQUIRE_MESSAGE(import.exit_status == 0, import.err);
  const std::string simulate = "fomoe simulate " + source_dir() +
                               "/tests/ideal/two-sites.toml --set compute.profile=" + (folder / "p.json") +
                               " --set strategy.expert_overlap=2 ";
  const Ran ran = run_in(folder.path(), simulate + "--output -");
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
  const auto report = nlohmann::json::parse(ran.out);
  // A site's 128 sequences are 64 times those of a GPU in the larger batch of the log, which took 0.94 s. The
  // 191 steps are 12 rounds, of which the last has 15 steps.
  CHECK(report["round"]["compute_s"].get<double>() == Approx(191.0 / 12 * 64 * 0.94));
  std::string step_time, parts, share;
  for (const auto& entry : report["provenance"]) {
    const std::string said = entry["origin"].get<std::string>() + ": " + entry["detail"].get<std::string>();
    if (entry["what"] == "step time") step_time = said;
    if (entry["what"] == "parts of a step") parts = said;
    if (entry["what"] == "step time of one GPU") share = said;
  }
  CHECK(step_time.starts_with(
      "measured: NVIDIA H100 80GB HBM3, bf16, not stated, imported from a megatron log: "
      "megatron.log, line 3 to 6, 3 steps used, SHA-256 "));
  CHECK(parts.starts_with("assumed: the log has times of whole steps only"));
  CHECK(share.starts_with("computed: each of the 8 GPUs"));
  const Ran people = run_in(folder.path(), simulate);
  CHECK(people.out.find("imported from a megatron log: megatron.log") != std::string::npos);

  SUBCASE("a profile of another model is refused, as measured profiles are") {
    const Ran other = run_in(folder.path(), simulate + "--set model.preset=medium");
    CHECK(other.exit_status == 2);
    CHECK(other.err.find("compute.profile: got step times of another model (fomoe, d_model 256") !=
          std::string::npos);
  }
}

TEST_CASE("a model of another architecture keeps its whole shape in the imported profile") {
  const Folder folder;
  const std::string scenario = source_dir() + "/tests/ideal/two-sites.toml";
  const std::string mixtral =
      " --set model.hf_config=" + source_dir() + "/experiments/models/mixtral-8x7b.json";
  const Ran import = run_in(
      folder.path(), "fomoe profile import " + kLogs + "megatron.log --from megatron --scenario " + scenario +
                         mixtral + " --dtype bf16 --output p.json --gpus 8 --warmup 1" + kDevice);
  REQUIRE_MESSAGE(import.exit_status == 0, import.err);
  const Ran ran = run_in(folder.path(), "fomoe simulate " + scenario + mixtral + " --set compute.profile=" +
                                            (folder / "p.json") + " --set strategy.expert_overlap=2");
  CHECK_MESSAGE(ran.exit_status == 0, ran.err);
}

TEST_CASE("values that a log does not have are asked for") {
  const std::string step = "step:  1  loss: 1.0  tps: 512\nstep:  2  loss: 1.0  tps: 512\n";
  // Everything that is missing is asked for at once.
  CHECK(
      complaint(step, "torchtitan", kDevice) ==
      "fomoe: --gpus: got nothing, and the log does not state it; expected the number of GPUs that compute a "
      "step together; for example --gpus 8\n"
      "fomoe: --sequences-per-step: got nothing, and the log does not state it; expected the number of "
      "sequences in one optimiser step, over all GPUs; for example --sequences-per-step 64\n");
  CHECK(complaint(step, "torchtitan", "--gpus 4 --sequences-per-step 8 --warmup 0") ==
        "fomoe: --device: got nothing, and the log does not state it; expected the name of the device that "
        "computed the steps; for example --device \"NVIDIA H100 80GB HBM3\"\n");
  CHECK(complaint(step, "torchtitan", "--gpus 4 --sequences-per-step 8" + kDevice) ==
        "a.log:1: warm-up: got 2 steps with 8 sequences, all of them warm-up; expected an "
        "entry of the log after the 3 steps of --warmup; for example --warmup 0\n");
  CHECK(complaint(step, "torchtitan", "--gpus 4 --sequences-per-step 8 --local-experts 9" + kDevice) ==
        "fomoe: --local-experts: got 9; expected at most the model's 8; for example --local-experts 8\n");
}

TEST_CASE("wrong logs: the message has the line, its value and the expected one") {
  const std::string gpus = "--gpus 4 --sequences-per-step 8" + kDevice;
  CHECK(complaint("step: 3  tps: fast\n", "torchtitan", gpus)
            .starts_with("a.log:1: tps: got \"fast\"; expected a number above zero; for example [titan]"));
  CHECK(complaint("hello\n", "torchtitan", gpus)
            .starts_with(
                "a.log:1: --from torchtitan: got no training step; expected lines with `step:` and `tps:`"));
  // A log of another program is recognised.
  CHECK(complaint(read_all(kLogs + "nanotron.log"), "megatron", gpus)
            .ends_with("did you mean --from nanotron?\n"));
  CHECK(
      complaint(" iteration 1/ 9 | elapsed time per iteration (ms): -3 |\n", "megatron", gpus)
          .starts_with("a.log:1: elapsed time per iteration (ms): got \"-3\"; expected a number above zero"));
  CHECK(complaint(" iteration 1/ 9 | elapsed time per iteration (ms): 3 | global batch size:  16 |\n",
                  "megatron", gpus) ==
        "a.log:1: sequences of a step: got 16 in the log; expected the 8 of --sequences-per-step, or the "
        "command without this option; for example --sequences-per-step 16\n");
  CHECK(complaint("{\"traceEvents\": 3}", "kineto", gpus)
            .starts_with("a.log:1: traceEvents: got nothing; expected an array of events"));
  CHECK(complaint("\x1f\x8b\x08", "kineto", gpus)
            .starts_with("a.log:1: trace: got a gzip file; expected JSON; gunzip"));
  CHECK(complaint("{", "kineto", gpus)
            .starts_with("a.log:1: trace: got text that is not valid JSON; expected a Kineto"));
  CHECK(complaint("[{\"ph\": \"X\", \"name\": \"ProfilerStep#x\", \"ts\": 1}]", "kineto", gpus)
            .starts_with("a.log:1: ProfilerStep#: got \"x\"; expected a whole number"));
  CHECK(complaint("step_s,forward_s\n", "csv", gpus)
            .starts_with(
                "a.log:1: header: got \"step_s,forward_s\"; expected either step_s, or all of forward_s"));
  CHECK(complaint("step_s,sequence\n", "csv", gpus).ends_with("did you mean sequences?\n"));
  CHECK(complaint("step_s\n0.4,3\n", "csv", gpus)
            .starts_with("a.log:2: row: got 2 cells; expected 1, one for each column of the header"));
  CHECK(complaint("step_s\n0\n", "csv", gpus)
            .starts_with("a.log:2: step_s: got \"0\"; expected a number above zero; for example 0.42"));
}

TEST_CASE("wrong options are named in the message") {
  const Folder folder;
  const auto err = [&](const std::string& rest) {
    return run_in(folder.path(), "fomoe profile " + rest).err;
  };
  CHECK(err("").starts_with("fomoe: fomoe profile: got nothing; expected import, compose or scale"));
  CHECK(err("imprt a.log").find("did you mean import?") != std::string::npos);
  CHECK(err("import a.log").starts_with("fomoe: --from: got nothing; expected one of torchtitan, megatron"));
  CHECK(err("import a.log --from megatrn --output -").find("did you mean megatron?") != std::string::npos);
  CHECK(err("import a.log --from csv").starts_with("fomoe: --output: got nothing; expected - or a file"));
  CHECK(
      err("import a.log --from csv --output -").starts_with("fomoe: expected either --model or --scenario"));
  CHECK(err("import no.log --from csv --output - --model small --gpus 1 --dtype bf16")
            .starts_with("no.log:1: log: got no readable file; expected a log of training steps"));
  CHECK(err("import a.log --from csv --output - --model smal --gpus 1").find("did you mean small?") !=
        std::string::npos);
}

TEST_CASE(
    "torchtitan: the log's own facts are read, warm-up counts steps, and recomputation is not charged "
    "again") {
  // The first entries cover step 1 and steps 2 to 10; with 5 steps of warm-up the first usable one is that of
  // steps 11 to 20.
  const std::string log =
      "[titan] - root - INFO - Building 2-D device mesh with ['dp_shard', 'tp'], [2, 4]\n"
      "[titan] - root - INFO - CUDA capacity: NVIDIA H100 80GB HBM3 with 79.10GiB memory\n"
      "[titan] - root - INFO - Applied full activation checkpointing to the model\n"
      "[titan] - root - INFO - Trainer is initialized with local batch size 8, global batch size 16, "
      "gradient "
      "accumulation steps 1, sequence length 1024, total steps 30 (warmup 2)\n"
      "[titan] - root - INFO - step:  1  loss: 9.0  tps: 64\n"
      "[titan] - root - INFO - step: 10  loss: 9.0  tps: 512\n"
      "[titan] - root - INFO - step: 20  loss: 9.0  tps: 1,024\n";
  const Folder folder;
  write_all(folder / "a.log", log);
  const Ran ran = run_in(folder.path(),
                         "fomoe profile import a.log --from torchtitan --model small --dtype bf16 "
                         "--warmup 5 --output p.json");
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
  const auto profile = scenario::read_step_profile(folder / "p.json");
  CHECK(profile.device_name == "NVIDIA H100 80GB HBM3");
  CHECK(profile.model.sequence_length == 1024);
  CHECK(profile.origin->gpus == 8);
  CHECK(profile.origin->recomputation == costmodel::Recomputation::full);
  REQUIRE(profile.points.size() == 1);
  CHECK(profile.points[0].micro_batch_sequences == 8);  // of the two ranks whose 4 GPUs share each matrix
  CHECK(profile.points[0].micro_batches == 1);
  CHECK(profile.points[0].timed_sequences() == 2);
  REQUIRE(profile.points[0].samples.size() == 1);
  CHECK(whole(profile.points[0].samples[0]) == Approx(2.0));  // 16·1024 tokens at 8·1024 per second

  const std::string scenario = "fomoe simulate " + source_dir() +
                               "/tests/ideal/two-sites.toml --set model.sequence_length=1024 "
                               "--set workload.global_batch_sequences=32 --set compute.gpus_per_site=8 "
                               "--output - --set compute.profile=" +
                               (folder / "p.json");
  const Ran used = run_in(folder.path(), scenario);
  REQUIRE_MESSAGE(used.exit_status == 0, used.err);
  const nlohmann::json report = nlohmann::json::parse(used.out);
  CHECK(report["scenario"]["compute"]["activation_checkpointing"] == true);  // for the memory
  const double steps = report["optimizer_steps"].get<double>(),
               rounds = report["round"]["count"].get<double>();
  CHECK(report["round"]["compute_s"].get<double>() == Approx(2.0 * steps / rounds).epsilon(0.05));
  const Ran refused = run_in(folder.path(), scenario + " --set compute.activation_checkpointing=false");
  CHECK(refused.exit_status == 2);
  CHECK(refused.err.find("false, with a profile whose steps include recomputation") != std::string::npos);

  // An option that contradicts the log is refused.
  const Ran other = run_in(folder.path(),
                           "fomoe profile import a.log --from torchtitan --model small --dtype bf16 "
                           "--gpus 4 --output q.json");
  CHECK(other.exit_status == 2);
  CHECK(other.err.starts_with("a.log:1: GPUs: got 8 in the log; expected the 4 of --gpus"));
}
