// Lines of programs and versions beside those of profile_import_test.cpp, in their real formats.
#include <doctest/doctest.h>

#include "tests/experiments/step_profiles/imported.hpp"

using namespace fomoe;
using namespace fomoe::tests;
using doctest::Approx;

TEST_CASE("MaxText: the first two steps are not step times, and the tokens of a device tell the batch") {
  std::string text =
      "I0804 08:13:33.7 1 pyconfig.py:465] Config param max_target_length: 2048\n"
      "I0804 08:13:33.7 1 pyconfig.py:465] Config param per_device_batch_size: 4.0\n"
      "I0804 08:13:33.7 1 pyconfig.py:465] Config param remat_policy: full\n"
      "Num_devices: 8, shape (1, 1, 8, 1)\n"
      "completed step: 0, seconds: 40.000, TFLOP/s/device: 17.022, Tokens/s/device: 204.800, total_weights: "
      "65536, loss: 12.038\n"
      "completed step: 1, seconds: 0.250, TFLOP/s/device: 2400.7, Tokens/s/device: 32768.000, total_weights: "
      "65536, loss: 12.0\n"
      "completed step: 2, seconds: 2.000, TFLOP/s/device: 135.158, Tokens/s/device: 4096.000, total_weights: "
      "65536, loss: 11.6\n"
      "completed step: 3, seconds: 2.000, TFLOP/s/device: 135.158, Tokens/s/device: 4096.000, total_weights: "
      "65536, loss: 11.3\n";
  const auto profile = profile_of_log(text, "maxtext", "--warmup 0 --device-kind tpu");
  CHECK(profile.origin->gpus == 8);
  CHECK(profile.origin->recomputation == costmodel::Recomputation::full);
  CHECK(profile.points[0].samples.size() == 2);
  CHECK(step_of(profile) == Approx(2.0));
  CHECK(profile.points[0].timed_sequences() == 4);  // 8,192 tokens of a device in sequences of 2,048
  CHECK(profile.points[0].micro_batch_sequences == 4);
  // Without the number of devices: all tokens ÷ those of a device. Older logs have neither.
  const std::string steps = text.substr(text.find("completed"));
  CHECK(profile_of_log(steps, "maxtext", "--sequence-length 2048").origin->gpus == 8);
  const std::string older = "completed step: 9, seconds: 2.167, TFLOP/s: 36.722, loss: 2.191\n";
  CHECK(refusal(older, "maxtext", "").find("--gpus: got nothing") != std::string::npos);
}

TEST_CASE("NeMo 2: a line for each step, with the batch and the memory") {
  std::string text;
  for (int i = 10; i < 16; ++i)
    text += "Training epoch 0, iteration " + std::to_string(i) +
            "/99 | lr: 6.897e-06 | global_batch_size: 96 | global_step: " + std::to_string(i) +
            " | max_memory_reserved: 64424509440 | reduced_train_loss: 11.96 | train_step_timing in s: 3.5 | "
            "TFLOPS_per_GPU: 1.249e+03 | consumed_samples: " +
            std::to_string(96 * (i + 1)) + "\n";
  const auto profile = profile_of_log(text, "nemo", "--gpus 16");
  CHECK(step_of(profile) == Approx(3.5));
  CHECK(profile.points[0].samples.size() == 3);
  CHECK(profile.points[0].timed_sequences() == 6);
  CHECK(profile.points[0].peak_memory_bytes == 64424509440);
  CHECK(profile.points[0].memory_counter == costmodel::MemoryCounter::reserved);
  // One line of a run that is not at its start is a step like any other.
  CHECK(step_of(profile_of_log(text.substr(0, text.find('\n') + 1), "nemo", "--gpus 16")) == Approx(3.5));
}

TEST_CASE(
    "NeMo 1: a progress bar that writes over itself, and the batch from the sequences that were consumed") {
  std::string text;
  for (int i = 0; i < 6; ++i)
    text += "\rEpoch 0: :   6%|6         | " + std::to_string(i + 1) +
            "/100 [00:48<00:00, reduced_train_loss=0.0172, global_step=" + std::to_string(i) +
            ".00, consumed_samples=" + std::to_string(256 * (i + 1)) + ".0, train_step_timing in s=3.130]";
  const auto profile = profile_of_log(text + "\n", "nemo", "--gpus 8");
  CHECK(step_of(profile) == Approx(3.13));
  CHECK(profile.points[0].timed_sequences() == 32);
}

TEST_CASE("OLMo-core: a line for each quantity of a step, and batches in tokens") {
  std::string text;
  for (int i = 1; i <= 4; ++i)
    text +=
        "2025-12-22 10:11:12.123\tlocalhost:0\tolmo_core.train.callbacks.console_logger:64\tINFO\t[step=" +
        std::to_string(10 * i) +
        "/1000,epoch=1,eta=1:02:03]\n"
        "    gpu_memory/GPU active mem (GiB)=50.14\n    gpu_memory/GPU reserved mem (GiB)=62.50\n"
        "    throughput/device/TPS=8,192\n    throughput/device/TPS (actual avg)=6,000\n"
        "    throughput/total tokens=" +
        std::to_string(1310720 * i) + "\n    train/CE loss=6.445\n";
  const auto profile = profile_of_log(text, "olmo-core", "--gpus 8 --sequence-length 2048");
  // 131,072 tokens in a step are 64 sequences; 16,384 tokens of a GPU at 8,192 tokens/s are 2 s.
  CHECK(profile.points[0].timed_sequences() == 8);
  CHECK(step_of(profile) == Approx(2.0));
  CHECK(profile.points[0].peak_memory_bytes == static_cast<std::int64_t>(62.5 * 0x1p30));
  const std::string wrong = refusal(text, "olmo-core", "--gpus 8 --sequence-length 3000");
  CHECK(proposal(wrong) == "--sequence-length 2048");
}

TEST_CASE("torchtitan until 2024: wps, and the names of that time") {
  const std::string text =
      "[rank0]:2024-06-11 12:00:00,000 - root - INFO - Building 2-D device mesh with ('dp', 'tp'), [4, 2]\n"
      "[rank0]:2024-06-11 12:00:00,100 - root - INFO - GPU capacity: NVIDIA H100 (0) with 95.04GiB memory\n"
      "[rank0]:2024-06-11 12:00:01,000 - root - INFO - Training starts at step 1, with local batch size 4, "
      "global batch "
      "size 16, sequence length 2048, total steps 100 (warmup 2)\n"
      "[rank0]:2024-06-11 12:00:02,000 - root - INFO - step:  1  loss: 10.8  memory: 26.77GiB(28.16%)  wps: "
      "100  mfu: 1.0%\n"
      "[rank0]:2024-06-11 12:00:09,000 - root - INFO - step: 10  loss:  8.1  memory: 30.00GiB(31.57%)  wps: "
      "2,048  mfu: 40.0%\n"
      "[rank0]:2024-06-11 12:00:19,000 - root - INFO - step: 20  loss:  7.1  memory: 30.00GiB(31.57%)  wps: "
      "2,048  mfu: 40.0%\n";
  const auto profile = profile_of_log(text, "torchtitan", "");
  CHECK(profile.origin->gpus == 8);
  CHECK(profile.origin->tensor_parallel == 2);
  CHECK(profile.points[0].micro_batch_sequences == 4);
  CHECK(step_of(profile) == Approx(2.0));  // 16 · 2,048 tokens on 8 GPUs at 2,048 tokens/s
}

TEST_CASE("expert parallelism is no factor of the GPUs of a mesh") {
  const std::string text =
      "[titan] - root - INFO - Building device mesh with parallelism: pp=2, dp_replicate=1, dp_shard=4, "
      "cp=2, tp=2, ep=4, "
      "etp=2\n"
      "[titan] - root - INFO - Applied FullAC activation checkpointing to the model\n"
      "step: 10  tps: 512\nstep: 20  tps: 512\n";
  const auto profile = profile_of_log(text, "torchtitan", "--sequences-per-step 16");
  CHECK(profile.origin->gpus == 32);
  CHECK(profile.origin->pipeline_parallel == 2);
  CHECK(profile.origin->context_parallel == 2);
  CHECK(profile.origin->recomputation == costmodel::Recomputation::full);
}

TEST_CASE("newer nanotron: time_per_iteration_ms, and batches in tokens") {
  std::string text;
  for (int i = 1; i <= 6; ++i)
    text +=
        "12/21 01:39:51 [INFO|DP=0|TP=0|node]: iteration: " + std::to_string(i) +
        " / 1500000 | consumed_tokens: 480B | time_per_iteration_ms: 2K | tokens_per_sec: 32.8K | "
        "tokens_per_sec_per_gpu: "
        "4.1K | global_batch_size: 65.5K | grad_norm: 0.112 | lm_loss: 2.04 | model_tflops_per_gpu: 15.4\n";
  // 65,450 to 65,550 tokens are 32 sequences of 2,048 tokens.
  const auto profile = profile_of_log(text, "nanotron", "--gpus 8 --sequence-length 2048");
  CHECK(profile.points[0].timed_sequences() == 4);
  CHECK(step_of(profile) == Approx(2.0));
}

TEST_CASE("Megatron-DeepSpeed: seconds, after a tag of the rank") {
  std::string text = "[default0]:  checkpoint_activations .......................... True\n";
  for (int i = 1; i <= 5; ++i)
    text += " [default7]: iteration " + std::to_string(i) +
            "/  115311 | consumed samples:  9841584 | consumed tokens:  20155564032 | "
            "elapsed time per iteration (s): 10.50 | learning rate: 5.969E-05 | global batch size:  2048 | "
            "lm loss: 2.463556E+00 | "
            "samples per second: 19.463 | TFLOPs: 149.02 |\n";
  const auto profile = profile_of_log(text, "megatron", "--gpus 384 --sequence-length 2048");
  CHECK(step_of(profile) == Approx(10.5));
  CHECK(profile.points[0].timed_sequences() == Approx(2048.0 / 384));
  CHECK(profile.origin->recomputation == costmodel::Recomputation::full);
}
