#include <array>
#include <filesystem>
#include <fstream>

#include "costmodel/compose/check.hpp"
#include "experiments/calibration/calibrate_iperf3.hpp"
#include "experiments/calibration/collectives_csv.hpp"
#include "experiments/files/link_trace_csv.hpp"
#include "experiments/files/platform_file.hpp"
#include "experiments/files/prices_file.hpp"
#include "experiments/files/quality_csv.hpp"
#include "experiments/files/routing_counts_csv.hpp"
#include "experiments/files/step_profile_io.hpp"
#include "experiments/model_files/hf_config.hpp"
#include "experiments/model_files/shape_file.hpp"
#include "experiments/model_files/weights.hpp"
#include "experiments/report/readers/result.hpp"
#include "experiments/results/plan_json.hpp"
#include "experiments/results/run_record.hpp"
#include "experiments/scenario/scenario_reader.hpp"
#include "experiments/scenario/scenario_source.hpp"
#include "experiments/scenario/sections/network_file.hpp"
#include "experiments/step_profiles/import.hpp"
#include "experiments/sweep/axis.hpp"
#include "experiments/sweep/journal.hpp"
#include "platforms/support/atomic_file.hpp"
#include "platforms/support/whole_file.hpp"
#include "sim/xml/xml_platform.hpp"
#include "tests/fuzz/readers.hpp"
#include "trainer/data/corpus.hpp"
#include "trainer/grid/grid_file.hpp"
#include "trainer/grid/grid_tables.hpp"

namespace fomoe::fuzz {

namespace {

std::string folder_of(const std::string& path) { return std::filesystem::path(path).parent_path().string(); }

const costmodel::Scenario& two_sites() {
  static const costmodel::Scenario scenario =
      scenario::read_scenario(FOMOE_SOURCE_DIR "/experiments/scenarios/two-sites.toml");
  return scenario;
}

void read_logs(const std::string& path) {
  const std::string text = whole_file(path).value();
  for (const step_profiles::LogFormat& format : step_profiles::log_formats()) {
    try {
      const std::vector<step_profiles::Log> runs = step_profiles::read_runs(format, path, {}, "");
      const step_profiles::Log& log = step_profiles::chosen_run(runs, path, 1);
      step_profiles::RunFacts facts;
      facts.model = two_sites().model;
      for (const step_profiles::MissingFact& missing : step_profiles::missing_facts(log, facts)) {
        if (missing.option == "--gpus") facts.gpus = 8;
        if (missing.option == "--sequences-per-step") facts.sequences_per_step = 64;
        if (missing.option == "--dtype") facts.dtype = "bf16";
        if (missing.option == "--device") facts.device_name = "a device";
      }
      (void)step_profiles::import_profile(format, path, log, facts);
    } catch (const FileError&) {  // the other formats still follow
    }
  }
}

// A stranger's report must name the values that it was made from, and these must give the same run again.
void read_run(const std::string& path) {
  const scenario::MeasuredRun run = scenario::read_measured_run(path);
  (void)scenario::read_scenario(run.record.source, path);
}

// The first line identifies the sweep, and each chunk has a checksum. The fuzzer's bytes are tried as all
// that follows the first line, and as a chunk, since it would not find the sum.
void read_journal(const std::string& path) {
  const std::string bytes = whole_file(path).value();
  std::uint64_t sum = 0xcbf29ce484222325ULL;  // FNV-1a, as in journal.cpp
  for (const char byte : bytes) sum = (sum ^ static_cast<unsigned char>(byte)) * 0x100000001b3ULL;
  const auto as_text = [](std::uint64_t number) {
    return std::string(reinterpret_cast<const char*>(&number), sizeof number);
  };
  for (const std::string& chunks : {bytes, as_text(bytes.size()) + bytes + as_text(sum)}) {
    {
      sweep::Journal empty(path, "");
      empty.start_anew();
    }
    std::ofstream(path, std::ios::binary | std::ios::app) << chunks;
    sweep::Journal journal(path, "");
    (void)journal.found();
    (void)journal.go_on(0, [](const sweep::Chunk&) {});
  }
}

void read_weights_index(const std::string& path) {
  constexpr const char kHeader[] = R"({"a.weight":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}})";
  std::string length(8, '\0');
  length[0] = sizeof kHeader - 1;
  write_file(folder_of(path) + "/model.safetensors", length + kHeader);
  (void)scenario::read_weights(folder_of(path));
}

void read_overrides(const std::string& path) {
  scenario::ReadOptions options;
  options.overrides = {whole_file(path).value()};
  (void)scenario::read_scenario(FOMOE_SOURCE_DIR "/experiments/scenarios/two-sites.toml", options);
}

void read_tokens(const std::string& path) {
  const trainer::TokenFile tokens = trainer::TokenFile::open(path, 1000);
  std::array<std::int64_t, 8> first{};
  const std::int64_t count = std::min<std::int64_t>(tokens.size(), first.size());
  tokens.copy(tokens.size() - count, count, first.data());
}

constexpr Reader kReaders[] = {
    {"scenario", "scenario.toml", [](const std::string& path) { (void)scenario::read_scenario(path); },
     "experiments/scenarios/*.toml experiments/proxies/*.toml"},
    {"override", "override", read_overrides, ""},
    {"vary", "vary", [](const std::string& path) { (void)sweep::parse_axis(whole_file(path).value()); }, ""},
    {"platform", "platform.toml", [](const std::string& path) { (void)scenario::read_platform_file(path); },
     "platforms/*.toml"},
    {"prices", "prices.toml",
     [](const std::string& path) {
       (void)scenario::read_price_file(path, {"on_demand", "on_demand"}, two_sites().platform);
     },
     "experiments/data/*price*.toml experiments/prices/*.toml"},
    {"network", "network.toml", [](const std::string& path) { (void)scenario::read_network_file(path); },
     "experiments/validation/*.toml"},
    {"grid", "grid.toml", [](const std::string& path) { (void)trainer::read_grid(path, {}); },
     "experiments/proxies/*.toml"},
    {"grid-rows", "rows.csv", [](const std::string& path) { (void)trainer::read_rows(path); },
     "experiments/proxies/results/*/rows.csv"},
    {"grid-result", "result.json", [](const std::string& path) { (void)trainer::read_result(path); },
     "experiments/validation/unequal/*-01-*.json"},
    {"plan", "plan.json", [](const std::string& path) { (void)scenario::read_plan(path, 3); },
     "experiments/plans/*.json"},
    {"profile", "profile.json", [](const std::string& path) { (void)scenario::read_step_profile(path); },
     "experiments/profiles/*.json experiments/proxies/results/*.json"},
    {"run", "run.json", read_run, "experiments/validation/unequal/*-0[0-3]-*.json"},
    {"results", "results.json", [](const std::string& path) { (void)report::read_results({path}); },
     "experiments/validation/unequal/*-0[0-3]-*.json build/fuzz/answers/*.json"},
    {"config", "config.json", [](const std::string& path) { (void)scenario::read_hf_config(path); },
     "experiments/models/*.json"},
    {"shape", "shape.json", [](const std::string& path) { (void)scenario::read_shape_file(path); }, ""},
    {"weights", "model.safetensors",
     [](const std::string& path) { (void)scenario::read_weights(folder_of(path)); }, ""},
    {"weights-index", "model.safetensors.index.json", read_weights_index, ""},
    {"xml", "platform.xml", [](const std::string& path) { (void)sim::read_xml_platform(path); },
     "tests/sim/platforms/*.xml"},
    {"paths", "paths.csv", [](const std::string& path) { (void)scenario::read_paths_csv(path); },
     "platforms/data/*.csv platforms/*.csv"},
    {"trace", "trace.csv",
     [](const std::string& path) {
       platforms::Platform platform = two_sites().platform;
       scenario::read_link_trace_csv(path, platform);
     },
     "experiments/data/link-trace*.csv"},
    {"routing", "routing.csv",
     [](const std::string& path) {
       (void)scenario::read_routing_counts(path, two_sites().model, two_sites().platform);
     },
     "experiments/data/*routing*.csv"},
    {"quality", "quality.csv", [](const std::string& path) { (void)scenario::read_quality_csv(path); },
     "experiments/data/paper_*.csv"},
    {"collectives", "collectives.csv",
     [](const std::string& path) {
       for (const auto& one : scenario::read_collectives_csv(path))
         (void)scenario::read_scenario(one.source, one.place);
     },
     "experiments/validation/published/*.csv"},
    {"log", "run.log", read_logs, "tests/experiments/data/logs/*"},
    {"iperf3", "iperf3.json", [](const std::string& path) { (void)commands::is_iperf3_report(path); },
     "tests/experiments/data/iperf3/*.json"},
    {"journal", "sweep.json.partial", read_journal, ""},
    {"tokens-npy", "tokens.npy", read_tokens, ""},
    {"tokens-bin", "tokens.bin",
     [](const std::string& path) { (void)trainer::Corpus::open(path, 100'000).sample(); }, ""},
};

}  // namespace

std::span<const Reader> file_readers() { return kReaders; }

}  // namespace fomoe::fuzz
