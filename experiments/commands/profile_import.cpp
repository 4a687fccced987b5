#include <fmt/format.h>

#include "experiments/cli/options.hpp"
#include "experiments/commands/profile_command.hpp"
#include "experiments/files/step_profile_io.hpp"
#include "experiments/scenario/scenario_reader.hpp"
#include "experiments/step_profiles/import.hpp"
#include "experiments/step_profiles/logs/log_text.hpp"
#include "experiments/text/suggest.hpp"
#include "platforms/support/parse_number.hpp"

namespace fomoe::commands {

namespace po = boost::program_options;

namespace {

const std::vector<std::string> kDtypes = {"bf16", "fp16", "fp8", "tf32", "fp32"};
const std::vector<std::string> kDeviceKinds = {"cuda", "rocm", "tpu", "cpu"};

std::string text_of(const po::variables_map& values, const std::string& option, const std::string& expected,
                    const std::string& example) {
  if (values.count(option)) return values[option].as<std::string>();
  throw UsageError(
      fmt::format("--{}: got nothing; expected {}; for example --{} {}", option, expected, option, example));
}

std::int64_t count_of(const std::string& option, const std::string& text, std::int64_t least,
                      const std::string& example) {
  constexpr std::int64_t kMost = 1'000'000'000;
  if (const auto value = parse_number<std::int64_t>(text); value && *value >= least && *value <= kMost)
    return *value;
  throw UsageError(fmt::format("--{}: got \"{}\"; expected a whole number from {} to {}; for example --{} {}",
                               option, text, least, kMost, option, example));
}

costmodel::ModelShape model_of(const po::variables_map& values) {
  if (values.count("model") + values.count("scenario") != 1) {
    throw UsageError(
        "expected either --model or --scenario, because logs do not state the trained model; for example "
        "--model small");
  }
  costmodel::ModelShape model;
  if (values.count("scenario")) {
    // Nothing but the model: the scenario may name the profile that this command is about to write.
    std::vector<std::string> overrides;
    if (values.count("set")) overrides = values["set"].as<std::vector<std::string>>();
    model = scenario::read_model_of(values["scenario"].as<std::string>(), overrides);
  } else {
    if (values.count("set"))
      throw UsageError(
          "--set: got this option without --scenario; expected --set only together with --scenario; for "
          "example --scenario experiments/scenarios/two-sites.toml");
    std::vector<std::string> names;
    for (const costmodel::ModelShape& preset : costmodel::presets()) names.push_back(preset.name);
    model = *costmodel::find_preset(choice("--model", values["model"].as<std::string>(), names));
  }
  return model;
}

step_profiles::RunFacts facts_of(const po::variables_map& values) {
  step_profiles::RunFacts facts;
  facts.model = model_of(values);
  if (values.count("sequence-length"))
    facts.sequence_length =
        count_of("sequence-length", values["sequence-length"].as<std::string>(), 1, "4096");
  if (values.count("gpus")) facts.gpus = count_of("gpus", values["gpus"].as<std::string>(), 1, "8");
  if (values.count("recomputation"))
    facts.recomputation = costmodel::enum_of<costmodel::Recomputation>(
        choice("--recomputation", values["recomputation"].as<std::string>(), {"none", "selective", "full"}));
  if (values.count("sequences-per-step")) {
    facts.sequences_per_step =
        count_of("sequences-per-step", values["sequences-per-step"].as<std::string>(), 1, "64");
  }
  if (values.count("micro-batch-sequences")) {
    facts.micro_batch_sequences =
        count_of("micro-batch-sequences", values["micro-batch-sequences"].as<std::string>(), 1, "1");
  }
  facts.local_experts = facts.model.experts;
  if (values.count("local-experts")) {
    facts.local_experts = count_of("local-experts", values["local-experts"].as<std::string>(), 0, "4");
    if (facts.local_experts > facts.model.experts) {
      throw UsageError(
          fmt::format("--local-experts: got {}; expected at most the model's {}; for example "
                      "--local-experts {}",
                      facts.local_experts, facts.model.experts, facts.model.experts));
    }
  }
  facts.skip_token = values["skip-token"].as<bool>();
  if (values.count("warmup")) facts.warmup = count_of("warmup", values["warmup"].as<std::string>(), 0, "3");
  facts.device_kind = choice("--device-kind", values["device-kind"].as<std::string>(), kDeviceKinds);
  if (values.count("device")) facts.device_name = values["device"].as<std::string>();
  if (values.count("dtype")) facts.dtype = choice("--dtype", values["dtype"].as<std::string>(), kDtypes);
  facts.versions = values["versions"].as<std::string>();
  facts.measured_at = values["measured-at"].as<std::string>();
  return facts;
}

/// Names everything at once that neither the options nor the log states.
void refuse_missing(const std::vector<step_profiles::MissingFact>& missing) {
  std::string text;
  for (const auto& [option, expected, example] : missing)
    text += fmt::format("{}{}: got nothing, and the log does not state it; expected {}; for example {} {}",
                        text.empty() ? "" : "\nfomoe: ", option, expected, option, example);
  if (!text.empty()) throw UsageError(text);
}

/// {"step_s", "run-1 - timing/step_time"} of --column 'step_s=run-1 - timing/step_time'.
step_profiles::Columns columns_of(const po::variables_map& values, const std::string& format) {
  step_profiles::Columns columns;
  if (!values.count("column")) return columns;
  if (format != "csv")
    throw UsageError(
        fmt::format("--column: got this option with --from {}; expected it with --from csv only; for "
                    "example --from csv",
                    format));
  for (const std::string& text : values["column"].as<std::vector<std::string>>()) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals + 1 == text.size())
      throw UsageError(
          fmt::format("--column: got \"{}\"; expected a quantity, = and the name of a column; for example "
                      "--column step_s=Value",
                      text));
    columns[choice("--column", text.substr(0, equals), step_profiles::csv_quantities(), "=Value")] =
        text.substr(equals + 1);
  }
  return columns;
}

/// What follows the log and its format in the command, for a command that reads the same times as CSV, whose
/// rows state no facts about the run.
std::string rest_for_csv(const Arguments& arguments, const po::variables_map& values,
                         const std::string& path) {
  std::string rest;
  bool log_seen = false;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--from" || argument == "--run") {
      ++i;
    } else if (argument == path && !log_seen) {
      log_seen = true;
    } else if (!argument.starts_with("--from=") && !argument.starts_with("--run=")) {
      rest += ' ' + step_profiles::shell_word(argument);
    }
  }
  for (const auto& [option, example] :
       {std::pair{"gpus", "8"}, std::pair{"sequences-per-step", "64"}, std::pair{"dtype", "bf16"},
        std::pair{"device", "\"NVIDIA H100 80GB HBM3\""}}) {
    if (!values.count(option)) rest += fmt::format(" --{} {}", option, example);
  }
  return rest;
}

po::options_description described() {
  po::options_description options("Options");
  // clang-format off
  options.add_options()
    ("from", po::value<std::string>()->value_name("FORMAT"), "format of the log: torchtitan, megatron, nemo, nanotron, maxtext, olmo-core, kineto or csv; required")
    ("run", po::value<std::string>()->value_name("N"), "number of the run, if the log has several: files that jobs append to, and restarted jobs")
    ("column", po::value<std::vector<std::string>>()->value_name("QUANTITY=NAME"), "for csv: the column of the file that has step_s, step_ms, tokens_per_s_per_gpu, tokens_per_s, forward_s, backward_s, optimizer_s, sequences or local_experts; may be given several times")
    ("model", po::value<std::string>()->value_name("NAME"), "the trained model, if it is a preset (`fomoe list models`)")
    ("scenario", po::value<std::string>()->value_name("S.toml"), "the trained model, as the model of this scenario")
    ("set", po::value<std::vector<std::string>>()->value_name("KEY=VALUE"), "override a key of that scenario's [model]")
    ("sequence-length", po::value<std::string>()->value_name("N"), "number of tokens in a sequence (default: the number in the log, or else the model's)")
    ("gpus", po::value<std::string>()->value_name("N"), "number of GPUs that compute a step together (default: the number in the log)")
    ("sequences-per-step", po::value<std::string>()->value_name("N"), "number of sequences in an optimiser step, over all GPUs (default: the number in the log)")
    ("micro-batch-sequences", po::value<std::string>()->value_name("N"), "number of sequences in one forward and backward pass of a replica (default: the number in the log)")
    ("recomputation", po::value<std::string>()->value_name("KIND"), "activation checkpointing of the run: none, selective or full (default: what the log states)")
    ("dtype", po::value<std::string>()->value_name("NAME"), "number format of the matrix products: bf16, fp16, fp8, tf32 or fp32")
    ("device", po::value<std::string>()->value_name("NAME"), "name of the device (default: the name in the log)")
    ("device-kind", po::value<std::string>()->default_value("cuda")->value_name("KIND"), "kind of device: cuda, rocm, tpu or cpu")
    ("local-experts", po::value<std::string>()->value_name("N"), "number of experts held in each layer (default: all)")
    ("skip-token", po::bool_switch(), "tokens skipped the experts that were not held")
    ("warmup", po::value<std::string>()->value_name("N"), "number of first optimiser steps to skip for each batch size and expert count (default: 3, and 0 for a log that begins later in the run and has no more steps)")
    ("versions", po::value<std::string>()->default_value("not stated")->value_name("TEXT"), "versions of libraries and driver, as free text")
    ("measured-at", po::value<std::string>()->default_value("not stated")->value_name("TIME"), "time of the measurement, UTC, ISO 8601")
    ("output", po::value<std::string>()->value_name("-|FILE.json"), "file for the step profile, or - for stdout; required");
  // clang-format on
  return options;
}

}  // namespace

void run_profile_import(const Arguments& arguments) {
  std::string formats;
  std::vector<std::string> names;
  for (const step_profiles::LogFormat& format : step_profiles::log_formats()) {
    formats += fmt::format("\n  {:<11}{}", format.name, format.sentence);
    names.emplace_back(format.name);
  }
  const Help help = {
      "profile import",
      "LOG --from FORMAT … --output P.json",
      "Reads step times from the log of another training program and writes a profile for "
      "compute.profile.\nReports identify the log by its SHA-256 and its lines. If the log gives only whole "
      "steps, a third of each\nstep counts as forward and the rest as backward. Formats:" +
          formats,
      {"fomoe profile import train.log --from torchtitan --model medium --gpus 8 --sequences-per-step 64 "
       "--dtype bf16 --device \"NVIDIA H100 80GB HBM3\" --output titan.json",
       "fomoe profile import trace.json --from kineto --scenario experiments/scenarios/two-sites.toml "
       "--gpus 1 --sequences-per-step 8 --dtype bf16 --output trace-profile.json",
       "fomoe profile import wandb.csv --from csv --column 'step_s=run-1 - timing/step_time' --model medium "
       "--gpus 8 --sequences-per-step 64 --dtype bf16 --device \"NVIDIA H100 80GB HBM3\" --output "
       "run-1.json"}};
  const auto values = parse(arguments, help, described(), "log");
  if (!values) return;
  const std::string from =
      choice("--from", text_of(*values, "from", "one of " + scenario::joined(names), "torchtitan"), names);
  const Output output(
      "--output", text_of(*values, "output", "- or a file that ends in .json", "profile.json"), {".json"});
  const std::string path = (*values)["log"].as<std::vector<std::string>>().front();
  for (const step_profiles::LogFormat& format : step_profiles::log_formats()) {
    if (format.name != from) continue;
    const step_profiles::RunFacts facts = facts_of(*values);
    const std::vector<step_profiles::Log> runs = step_profiles::read_runs(
        format, path, columns_of(*values, from), rest_for_csv(arguments, *values, path));
    std::optional<std::int64_t> number;
    if (values->count("run")) number = count_of("run", (*values)["run"].as<std::string>(), 1, "1");
    const step_profiles::Log& log = step_profiles::chosen_run(runs, path, number);
    refuse_missing(step_profiles::missing_facts(log, facts));
    auto [profile, notes] = import_profile(format, path, log, facts);
    for (const std::string& note : notes) message("note: " + note);
    profile.source = "fomoe profile import";
    for (const std::string& argument : arguments) profile.source += ' ' + argument;
    output.write(scenario::step_profile_json(profile));
  }
}

}  // namespace fomoe::commands
