#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "costmodel/inputs/model_shape.hpp"
#include "costmodel/methods/all.hpp"
#include "costmodel/plan/method.hpp"
#include "costmodel/plan/site_shares.hpp"
#include "costmodel/value/published_quality.hpp"
#include "experiments/analysis/comparable_runs.hpp"
#include "experiments/cli/answer.hpp"
#include "experiments/cli/command.hpp"
#include "experiments/cli/options.hpp"
#include "experiments/files/accelerators.hpp"
#include "experiments/files/platform_file.hpp"
#include "experiments/model_files/hf_config.hpp"
#include "experiments/output/quality_text.hpp"
#include "experiments/scenario/json_schema.hpp"
#include "experiments/scenario/keys/keys.hpp"
#include "experiments/scenario/scenario_reader.hpp"
#include "experiments/text/human.hpp"
#include "experiments/text/suggest.hpp"

namespace fomoe::commands {

namespace po = boost::program_options;

namespace {

std::string methods(bool details) {
  std::string text;
  for (const costmodel::Method& method : costmodel::methods()) {
    const std::vector<std::string> axes(method.axes.begin(), method.axes.end());
    text += fmt::format("{}\n  {}\n  changed by: {}\n  source: {}\n", method.name, method.summary,
                        axes.empty() ? "none" : scenario::joined(axes), method.source);
    if (details)
      text += fmt::format("  through a store: {}\n{}  not modelled: {}\n  assumed: {}\n",
                          method.through_store ? "yes, with collective = \"store\"" : "no",
                          method.through_chain ? "  along a chain: yes, with collective = \"chain\"\n" : "",
                          method.not_modelled, method.assumptions);
  }
  return text;
}

/// The model configs of the repository, if the program is started in the repository's root.
std::string published_models() {
  const std::filesystem::path folder = "experiments/models";
  std::error_code ignored;
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path().string());
  }
  if (files.empty()) return "";
  std::sort(files.begin(), files.end());
  std::vector<Row> rows;
  for (const std::string& file : files) {
    const costmodel::ModelShape shape = scenario::read_hf_config(file);
    rows.push_back({file, human_count(static_cast<double>(costmodel::count_parameters(shape).total()))});
  }
  return "\nExamples for model.hf_config:\n" + aligned(rows);
}

std::string wrapped(const std::vector<std::string>& words) {
  std::string text, line;
  for (const std::string& word : words) {
    if (line.size() + word.size() > 100) {
      text += "  " + line + '\n';
      line.clear();
    }
    line += (line.empty() ? "" : ", ") + word;
  }
  return text + "  " + line + '\n';
}

std::string other_models() {
  return "\nThere are three ways to describe another model. Paths are relative to the scenario file, and "
         "nothing "
         "is downloaded.\n"
         "1. model.hf_config names the config.json of a model on Hugging Face. Its model_type, or that of "
         "its "
         "text_config,\n   must be one of these. Encoders of images and sound do not count. With experts:\n" +
         wrapped(scenario::hf_model_types(true)) + "   Dense models:\n" +
         wrapped(scenario::hf_model_types(false)) +
         "2. model.safetensors names a folder with a model's *.safetensors files. fomoe reads only their "
         "headers, "
         "takes\n   the tensors named \"experts\" as experts, finds the layers with attention by the "
         "tensors' names, "
         "and says\n   so. This works for every architecture.\n"
         "3. model.shape names a file that `fomoe model PATH --output FILE` wrote, or Python's\n"
         "   fomoe.model_from_transformers(config), which builds any model that the library transformers "
         "knows, "
         "without weights.\n"
         "`fomoe model PATH` shows how a model is counted, and what was guessed.\n";
}

std::string models() {
  std::vector<Row> rows = {{"preset", "parameters", "d_model", "layers", "heads", "experts", "active_experts",
                            "d_expert", "vocabulary", "sequence_length"}};
  for (const costmodel::ModelShape& shape : costmodel::presets()) {
    rows.push_back({shape.name, human_count(static_cast<double>(costmodel::count_parameters(shape).total())),
                    std::to_string(shape.d_model), std::to_string(shape.layers), std::to_string(shape.heads),
                    std::to_string(shape.experts), std::to_string(shape.active_experts),
                    std::to_string(shape.d_expert), std::to_string(shape.vocabulary),
                    std::to_string(shape.sequence_length)});
  }
  return "Models of the FoMoE paper, for model.preset:\n" + aligned(rows) + other_models() +
         published_models();
}

std::string accelerators() {
  std::vector<Row> rows = {{"accelerator", "bf16 TFLOP/s", "fp8", "fp32", "memory", "GB/s", "power"}};
  std::vector<std::string> sources = {"source"};
  for (const scenario::Accelerator& row : scenario::accelerators()) {
    const auto peak = [&](const char* dtype) {
      const auto found = row.peak_flops.find(dtype);
      return found == row.peak_flops.end() ? std::string("-") : fmt::format("{:g}", found->second / 1e12);
    };
    rows.push_back({row.name, peak("bf16"), peak("fp8"), peak("fp32"),
                    fmt::format("{:g} GiB", row.memory_bytes / 0x1p30),
                    fmt::format("{:g}", row.memory_bytes_per_s / 1e9),
                    row.power_w ? fmt::format("{:g} W", *row.power_w) : "-"});
    sources.push_back(row.source);
  }
  return aligned_before(rows, sources) +
         "\nPeak rates of dense matrix products. \"-\": the vendor states no value. All values are "
         "assumptions, not measurements.\n";
}

std::string keys_of(std::span<const scenario::Key> keys, bool arrays) {
  std::string text;
  std::string_view table = "\n";  // no table has this name, so that the first table prints its heading
  for (const scenario::Key& key : keys) {
    if (key.table != table && !key.table.empty()) {
      const bool array = arrays ? key.table != "default_path" : key.table == "site" || key.table == "path";
      text += array ? fmt::format("\n[[{}]]\n", key.table) : fmt::format("\n[{}]\n", key.table);
    }
    table = key.table;
    const std::string absent = !key.fallback.empty() ? fmt::format("default {}", key.fallback)
                               : !key.absent.empty() ? fmt::format("default: {}", key.absent)
                                                     : "required";
    text += fmt::format("{}\n    {} ({})\n", scenario::example_line(key), key.sentence, absent);
    text += fmt::format("    {}\n", scenario::expected_value(key));
  }
  return text;
}

std::string platforms(const std::string& folder) {
  if (!std::filesystem::is_directory(folder)) {
    throw UsageError(fmt::format(
        "--folder: got \"{}\", which is not a folder; expected a folder with platform files; for example "
        "--folder platforms",
        folder));
  }
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".toml") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  std::string text = "equal sites\n  [platform] sites, bandwidth and latency in the scenario itself\n";
  for (const std::string& file : files) {
    platforms::Platform platform;
    try {
      platform = scenario::read_platform_file(file);
    } catch (const FileError& error) {  // such as a scenario in the same folder
      text += fmt::format("{}\n  no platform: {}\n", file, error.what());
      continue;
    }
    text += fmt::format("{}\n  {} sites:", file, platform.size());
    for (const platforms::Site& site : platform.sites) text += ' ' + site.name;
    text += '\n';
    for (const Provenance& entry : platform.provenance) {
      text += fmt::format("  {} {}: {}\n", to_string(entry.origin), entry.what, entry.detail);
    }
  }
  return text;
}

/// The folder `platforms` of the repository in whose build folder this program is, or of the Python package
/// that this program belongs to.
std::string own_platforms() {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  for (fs::path folder = program.parent_path(); !folder.empty(); folder = folder.parent_path()) {
    for (const fs::path& parent : {folder, folder / "examples"}) {
      const fs::path found = parent / "platforms";
      if (fs::exists(found / "eight-regions.toml", error)) return fs::proximate(found, error).string();
    }
    if (folder == folder.root_path()) break;
  }
  return "platforms";
}

}  // namespace

void run_list(const Arguments& arguments) {
  po::options_description options("Options");
  options.add_options()("folder", po::value<std::string>()->value_name("FOLDER"),
                        "folder that `list platforms` searches for platform files (default: that of the "
                        "repository)")("near", po::value<std::string>()->value_name("SCENARIO.toml"),
                                       "order `list profiles` by how close a row is to this scenario's model "
                                       "and device, or `list quality` by how "
                                       "close a run is to its active parameters, sites and local steps")(
      "details", po::bool_switch(),
      "with `list methods`: variants that are not modelled, and what is assumed")(
      "json-schema", po::bool_switch(),
      "with `list keys`: print the keys of a scenario as a JSON Schema (draft 2020-12), which editors use to "
      "complete and check scenario files");
  const Help help = {
      "list",
      "methods|models|keys|platforms|accelerators|profiles|quality",
      "Lists what a scenario can use: training methods, models, keys with their defaults, "
      "platforms, accelerators, published training speeds (profiles) or published losses (quality).",
      {"fomoe list methods", "fomoe list methods --details", "fomoe list models", "fomoe list keys",
       "fomoe list keys --json-schema", "fomoe list platforms", "fomoe list accelerators",
       "fomoe list profiles --near experiments/scenarios/four-regions.toml",
       "fomoe list quality --near experiments/scenarios/four-regions.toml"}};
  const auto values = parse(arguments, help, options, "what");
  if (!values) return;
  const std::string what =
      choice("fomoe list", (*values)["what"].as<std::vector<std::string>>().front(),
             {"methods", "models", "keys", "platforms", "accelerators", "profiles", "quality"});
  const auto only_with = [&](const char* option, bool given, const std::vector<std::string>& lists,
                             const char* value) {
    if (given && std::find(lists.begin(), lists.end(), what) == lists.end())
      throw UsageError(
          fmt::format("{0}: got this option with `list {1}`; expected `list {2}`; for example fomoe list {3} "
                      "{0}{4}",
                      option, what, scenario::joined(lists, "` or `list "), lists.front(), value));
  };
  only_with("--near", values->count("near") > 0, {"profiles", "quality"},
            " experiments/scenarios/four-regions.toml");
  only_with("--folder", values->count("folder") > 0, {"platforms"}, " platforms");
  only_with("--details", (*values)["details"].as<bool>(), {"methods"}, "");
  only_with("--json-schema", (*values)["json-schema"].as<bool>(), {"keys"}, "");
  if ((*values)["json-schema"].as<bool>()) {
    return scenario::write_answer(scenario::json_schema());
  }
  if (what == "methods") scenario::write_answer(methods((*values)["details"].as<bool>()));
  if (what == "accelerators") scenario::write_answer(accelerators());
  if (what == "profiles") {
    if (values->count("near")) {
      const costmodel::Scenario near = scenario::read_scenario((*values)["near"].as<std::string>());
      scenario::write_answer(published_table(&near));
    } else {
      scenario::write_answer(published_table(nullptr));
    }
  }
  if (what == "quality") {
    if (values->count("near")) {
      const costmodel::Scenario near = scenario::read_scenario((*values)["near"].as<std::string>());
      const costmodel::LossSetting setting =
          costmodel::loss_setting(near.model, near.strategy, near.sites(),
                                  near.workload.global_batch_sequences, costmodel::optimizer_steps(near));
      scenario::write_answer(published_quality_table(&setting));
    } else {
      scenario::write_answer(published_quality_table(nullptr));
    }
  }
  if (what == "models") scenario::write_answer(models());
  if (what == "keys") {
    scenario::write_answer(fmt::format(
        "Scenario file\n\n{}\nPlatform file\n\n{}\nPrice file\n\n{}\nGrid file, for fomoe-train grid\n\n{}",
        keys_of(scenario::scenario_keys(), false), keys_of(scenario::platform_file_keys(), true),
        keys_of(scenario::price_file_keys(), true), keys_of(scenario::grid_file_keys(), true)));
  }
  if (what == "platforms")
    scenario::write_answer(
        platforms(values->count("folder") ? (*values)["folder"].as<std::string>() : own_platforms()));
}

}  // namespace fomoe::commands
