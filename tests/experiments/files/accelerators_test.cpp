// Tests of the catalogue of accelerators: its rows, the values that a scenario takes from it, and profiles
// scaled with it.
#include "experiments/files/accelerators.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "experiments/files/step_profile_io.hpp"
#include "tests/experiments/run_fomoe.hpp"

using namespace fomoe;
using namespace fomoe::tests;
using doctest::Approx;
using nlohmann::json;
using scenario::Accelerator;

namespace {

/// Returns "origin: detail" for each line of the report's provenance about `what`.
std::string said_of(const json& report, const std::string& what) {
  std::string text;
  for (const auto& entry : report["provenance"]) {
    if (entry["what"] == what)
      text += entry["origin"].get<std::string>() + ": " + entry["detail"].get<std::string>() + '\n';
  }
  return text;
}

}  // namespace

TEST_CASE("every accelerator has a unique name, a source, and figures of one device without sparsity") {
  std::set<std::string> names;
  REQUIRE(scenario::accelerators().size() >= 15);
  for (const Accelerator& row : scenario::accelerators()) {
    CAPTURE(row.name);
    CHECK(names.insert(row.name).second);
    CHECK(row.source.size() > 10);
    CHECK(row.peak_flops.contains("bf16"));
    // A wrong unit, the figure of a whole server of 8, or two dies counted as one device would be outside of
    // these ranges.
    CHECK(row.peak_flops.at("bf16") >= 70e12);
    CHECK(row.peak_flops.at("bf16") <= 2.6e15);
    CHECK(row.memory_bytes >= 16 * 0x1p30);
    CHECK(row.memory_bytes <= 288 * 0x1p30);
    CHECK(row.memory_bytes_per_s >= 600e9);
    CHECK(row.memory_bytes_per_s <= 8e12);
    if (row.power_w) CHECK((*row.power_w >= 150 && *row.power_w <= 1400));
    // A format of half the width has twice the rate. A figure with sparsity on one side only would give a
    // factor of 4 or 1. Three vendors' documents state another ratio.
    const double ratio = row.name == "Gaudi3" || row.name == "Trainium1" ? 1
                         : row.name == "Trainium3"                       ? 3.75
                                                                         : 2;
    if (row.peak_flops.contains("fp8"))
      CHECK(row.peak_flops.at("fp8") / row.peak_flops.at("bf16") == Approx(ratio).epsilon(0.02));
  }
  const Accelerator* h100 = scenario::accelerator_of_device("NVIDIA H100 80GB HBM3");
  REQUIRE(h100 != nullptr);
  CHECK(h100->name == "H100-SXM");
  CHECK(h100->peak_flops.at("bf16") == 989.5e12);
}

TEST_CASE("a scenario that names an accelerator takes its peak, memory and power, and the report says so") {
  const std::string simulate =
      "fomoe simulate " + kTwoSites + " --set energy.idle_share=0.2 --set compute.mfu=0.4 --output - ";
  const Ran ran = run(simulate + "--set compute.accelerator=H100-SXM");
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
  const json report = json::parse(ran.out);
  CHECK(report["scenario"]["compute"]["peak_flop_per_s"] == 989.5e12);
  CHECK(report["scenario"]["compute"]["gpu_memory_bytes"] == doctest::Approx(79.1 * 0x1p30));
  CHECK(said_of(report, "peak FLOP rate") ==
        "assumed: 989.5 TFLOP/s, bf16 of H100-SXM, from the catalogue: NVIDIA H100 Tensor Core GPU datasheet "
        "(half "
        "of its figures with sparsity)\n");
  CHECK(said_of(report, "GPU memory").starts_with("assumed: 79.1 GiB of H100-SXM, from the catalogue"));
  CHECK(said_of(report, "GPU memory").find("; of its 80 GiB, programs can use these (") != std::string::npos);
  CHECK(said_of(report, "GPU power").starts_with("assumed: 700 W of H100-SXM, from the catalogue"));

  // The same as with the accelerator's figures given by hand.
  const Ran typed = run("fomoe simulate " + kTwoSites +
                        " --set energy.idle_share=0.2 --set energy.gpu_power=700W --set compute.mfu=0.4 "
                        "--set compute.peak_flops=989.5TFLOPS --set compute.gpu_memory=80GiB "
                        "--set compute.memory_bandwidth=3350GBps --output -");
  REQUIRE_MESSAGE(typed.exit_status == 0, typed.err);
  CHECK(json::parse(typed.out)["wall_clock_s"] == report["wall_clock_s"]);
  CHECK(json::parse(typed.out)["cost"]["energy_kwh"] == report["cost"]["energy_kwh"]);

  // fp8 has twice the rate, and given keys win over the catalogue. The outer step does not depend on the
  // rate.
  const std::string bf16_average =
      simulate + "--set compute.accelerator=H100-SXM --set strategy.method=local_sgd ";
  const Ran average = run(bf16_average);
  const Ran fp8 = run(bf16_average + "--set compute.dtype=fp8 --set compute.gpu_memory=60GiB");
  REQUIRE_MESSAGE(fp8.exit_status == 0, fp8.err);
  CHECK(json::parse(fp8.out)["round"]["compute_s"].get<double>() ==
        Approx(json::parse(average.out)["round"]["compute_s"].get<double>() / 2));
  CHECK(json::parse(fp8.out)["scenario"]["compute"]["gpu_memory_bytes"] == 60 * 0x1p30);
  CHECK(said_of(json::parse(fp8.out), "GPU memory").empty());
}

TEST_CASE("with a given step time an accelerator supplies only memory and power") {
  const Ran ran = run("fomoe simulate " + kTwoSites + " --set compute.accelerator=L40S --output -");
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
  const json report = json::parse(ran.out);
  CHECK(report["scenario"]["compute"]["step_time_s"] == 0.42);
  CHECK(report["scenario"]["compute"]["gpu_memory_bytes"] == 48 * 0x1p30);
}

TEST_CASE("wrong accelerators: the message lists the catalogue and suggests similar names") {
  const auto err = [](const std::string& options) {
    const Ran ran = run("fomoe simulate " + kTwoSites + ' ' + options);
    CHECK(ran.exit_status == 2);
    return ran.err;
  };
  const std::string unknown = err("--set compute.accelerator=H100 --set compute.mfu=0.4");
  CHECK(unknown.find(
            "compute.accelerator: got \"H100\"; expected one of A100-40GB-SXM, A100-80GB-SXM, H100-SXM") !=
        std::string::npos);
  CHECK(unknown.find("did you mean H100-SXM or H100-PCIe or H100-NVL?") != std::string::npos);
  CHECK(err("--set compute.accelerator=mi300x").ends_with("did you mean MI300X?\n"));
  CHECK(err("--set compute.accelerator=TPU-v5e --set compute.mfu=0.4 --set compute.dtype=fp8")
            .find("compute.dtype: got \"fp8\", for which the catalogue has no peak of TPU-v5e; expected one "
                  "of bf16") != std::string::npos);
  CHECK(err("--set compute.dtype=fp8").find("compute.dtype: got dtype without accelerator") !=
        std::string::npos);
  // The vendor does not publish the power of this accelerator.
  CHECK(err("--set compute.accelerator=TPU-v5p --set energy.idle_share=0.2")
            .find("energy.gpu_power: got nothing; expected a power above zero") != std::string::npos);
}

TEST_CASE("fomoe list accelerators prints one line for each, with its source") {
  const Ran ran = run("fomoe list accelerators");
  CHECK(ran.exit_status == 0);
  for (const Accelerator& row : scenario::accelerators()) {
    CHECK(ran.out.find(row.name) != std::string::npos);
    CHECK(ran.out.find(row.source) != std::string::npos);
  }
}

TEST_CASE(
    "a profile scaled to another device uses the ratios of peaks and of memory bandwidths, and is assumed") {
  const Folder folder;
  costmodel::StepProfile profile;
  profile.model = *costmodel::find_preset("small");
  profile.device_kind = "cuda";
  profile.device_name = "NVIDIA A100-SXM4-80GB";
  profile.dtype = "bf16";
  profile.versions = "none";
  profile.measured_at = "2025-01-02T03:04:05Z";
  profile.points.push_back({4, 8, false, 0, {{0.3, 0.6, 0.2}}});
  write_all(folder / "a100.json", scenario::step_profile_json(profile));
  const auto scale = [&](const std::string& options) {
    return run_in(folder.path(), "fomoe profile scale " + options);
  };
  const Ran ran = scale("a100.json --to H100-SXM --output h100.json");
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
  const costmodel::StepProfile scaled = scenario::read_step_profile(folder / "h100.json");
  CHECK(scaled.device_name == "H100-SXM");
  CHECK(scaled.points[0].samples[0].forward_s == Approx(0.3 * 312 / 989.5));
  CHECK(scaled.points[0].samples[0].backward_s == Approx(0.6 * 312 / 989.5));
  CHECK(scaled.points[0].samples[0].optimizer_s == Approx(0.2 * 2039 / 3350));

  const Ran simulated = run_in(folder.path(), "fomoe simulate " + kTwoSites +
                                                  " --set compute.profile=" + (folder / "h100.json") +
                                                  " --set strategy.expert_overlap=2 --output -");
  REQUIRE_MESSAGE(simulated.exit_status == 0, simulated.err);
  CHECK(said_of(json::parse(simulated.out), "step time")
            .starts_with(
                "assumed: scaled from NVIDIA A100-SXM4-80GB to H100-SXM: forward and backward x 0.3153 "
                "(peaks in bf16), optimiser x 0.6087 (memory bandwidths): "));

  CHECK(scale("h100.json --to B200-SXM --output -").err.find("profile: got times that were scaled already") !=
        std::string::npos);
  CHECK(scale("a100.json --to H100 --output -").err.find("did you mean H100-SXM") != std::string::npos);
  CHECK(scale("a100.json --output -")
            .err.starts_with("fomoe: --to: got nothing; expected one of A100-40GB-SXM"));
  profile.device_name = "my laptop";
  profile.dtype = "fp8";
  write_all(folder / "laptop.json", scenario::step_profile_json(profile));
  CHECK(scale("laptop.json --to H100-SXM --output -")
            .err.starts_with("fomoe: --from: got nothing, and the profile's device \"my laptop\""));
  CHECK(scale("laptop.json --from H100-SXM --to A10 --output -")
            .err.find("fp8, for which the catalogue has no peak of A10") != std::string::npos);
}
