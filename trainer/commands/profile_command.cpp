#include "trainer/commands/profile_command.hpp"

#include <boost/program_options.hpp>
#include <iostream>
#include <limits>
#include <variant>

#include "costmodel/plan/site_shares.hpp"
#include "experiments/files/step_profile_io.hpp"
#include "experiments/scenario/scenario_reader.hpp"
#include "experiments/text/suggest.hpp"
#include "experiments/text/units.hpp"
#include "platforms/support/atomic_file.hpp"
#include "platforms/support/parse_number.hpp"
#include "trainer/commands/command_line.hpp"
#include "trainer/commands/synchronisation_profile.hpp"
#include "trainer/device/device_info.hpp"
#include "trainer/step/profile.hpp"

namespace fomoe::trainer {

namespace po = boost::program_options;

namespace {

constexpr const char* kProfileExamples = R"(
Examples
  fomoe-train profile --model small --sequence-length 128 --output -
  fomoe-train profile --model small --sequence-length 128 --local-experts 4,8 --micro-batch-sequences 1,2 --output small.json
  for i in 1 2; do fomoe-train profile --model small --shared-device --time-budget 4s --output small-$i.json & done; wait
)";

po::options_description options_of_profile() {
  const ProfileOptions defaults;
  po::options_description options(
      "fomoe-train profile: times the forward pass, backward pass and optimiser of real steps");
  // clang-format off
  options.add_options()
    ("help", "print this help")
    ("model", po::value<std::string>(), "model preset: small, medium, large, xl or xxl")
    ("scenario", po::value<std::string>(), "scenario file that gives the model and skip_token (instead of --model)")
    ("layers", po::value<std::string>(), "number of layers (default: the model's)")
    ("local-experts", po::value<std::string>(), "number of local experts in each layer, or several numbers separated by commas (default: the number that the scenario's sites hold, or all)")
    ("micro-batch-sequences", po::value<std::string>(), "sequences per micro-batch, or several numbers separated by commas (default: the scenario's, or 1)")
    ("sequence-length", po::value<std::string>(), "tokens per sequence (default: the model's)")
    ("skip-token", po::bool_switch(), "the router scores all experts, and tokens skip the experts that are not local")
    ("device", po::value<std::string>()->default_value("auto"), "auto, cpu or cuda; auto selects cuda if a CUDA device is available")
    ("dtype", po::value<std::string>(), "fp32 or bf16 (default: fp32 on cpu, bf16 on cuda)")
    ("kernels", po::value<std::string>()->default_value("auto"), "own (this program's kernels; on cpu: plain loops on one core), library (LibTorch's operators) or auto (own on cuda, library on cpu)")
    ("cuda-graph", po::value<std::string>()->default_value("auto"), "on (steps are recorded once and launched as CUDA graphs), off (kernels are launched one by one) or auto (on where it is possible)")
    ("threads", po::value<std::string>(), "CPU threads (default: the cores and the CPU quota of this process)")
    ("steps", po::value<std::string>()->default_value(std::to_string(defaults.steps)), "number of timed steps per measurement point, at least 3")
    ("warmup", po::value<std::string>()->default_value(std::to_string(defaults.warmup)), "number of untimed steps before the timed steps")
    ("time-budget", po::value<std::string>()->default_value("60s"), "stop a measurement point after this time, but not before 3 steps")
    ("shared-device", po::bool_switch(), "other processes are timed on the same device at the same time, on purpose: each point takes the whole --time-budget, no point is measured again because others took turns, and predictions say that the device was shared")
    ("seed", po::value<std::string>()->default_value(std::to_string(defaults.seed)), "seed of the weights and tokens")
    ("output", po::value<std::string>(), "output file, or - for standard output");
  // clang-format on
  return options;
}

std::int64_t whole_number(const std::string& option, const std::string& text, std::int64_t least,
                          std::int64_t most) {
  const auto value = parse_number<std::int64_t>(text);
  if (!value || *value < least || *value > most) {
    refuse_option(option, '"' + text + '"',
                  "a whole number from " + std::to_string(least) + " to " + std::to_string(most),
                  std::to_string(least));
  }
  return *value;
}

std::vector<std::int64_t> whole_numbers(const std::string& option, const std::string& text,
                                        std::int64_t most) {
  std::vector<std::int64_t> out;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    out.push_back(whole_number(option, text.substr(begin, comma - begin), 1, most));
    begin = comma + 1;
  }
  return out;
}

double duration_s(const std::string& option, const std::string& text) {
  try {
    return scenario::parse_quantity(text, scenario::Quantity::duration);
  } catch (const scenario::QuantityError& error) {
    refuse_option(option, error.what(), "a duration with its unit", "60s");
  }
}

void choose_model(const po::variables_map& given, ProfileOptions& options) {
  if (given.count("model") + given.count("scenario") != 1) {
    throw UsageError("give either --model or --scenario; for example --model small");
  }
  if (given.count("scenario")) {
    scenario::ReadOptions how;
    how.compute_required = false;  // the scenario may name the profile that this command is about to write
    const costmodel::Scenario scenario = scenario::read_scenario(given["scenario"].as<std::string>(), how);
    if (scenario.model.architecture != costmodel::ModelShape{}.architecture) {
      refuse_option(
          "scenario", "a model of architecture " + scenario.model.architecture,
          "a model of the FoMoE paper's architecture, given by a preset or by shape keys in [model]",
          "experiments/scenarios/two-sites.toml");
    }
    if (scenario.model.experts == 0) {
      refuse_option("scenario", "a model without experts",
                    "a model with experts, since a profile has step times by the number of local experts",
                    "experiments/scenarios/two-sites.toml");
    }
    options.model = scenario.model;
    options.skip_token = scenario.strategy.skip_token;
    // Profile what the scenario's sites will run: N_le local experts, the next whole numbers if layers
    // differ, and its micro-batch if it has one.
    const costmodel::ExpertShares held = costmodel::expert_shares(scenario);
    options.local_experts = {held.fewest_of_layer()};
    if (held.most_of_layer() != held.fewest_of_layer()) options.local_experts.push_back(held.most_of_layer());
    const auto* profiled = std::get_if<costmodel::ProfiledCompute>(&scenario.compute);
    if (profiled != nullptr && profiled->micro_batch_sequences > 0)
      options.micro_batch_sequences = {profiled->micro_batch_sequences};
    return;
  }
  const auto& name = given["model"].as<std::string>();
  const costmodel::ModelShape* preset = costmodel::find_preset(name);
  if (preset == nullptr) {
    std::vector<std::string> names;
    for (const costmodel::ModelShape& shape : costmodel::presets()) names.push_back(shape.name);
    const std::string near = scenario::nearest(name, names);
    refuse_option("model", '"' + name + '"', "one of " + scenario::joined(names),
                  near.empty() ? names.front() : near);
  }
  options.model = *preset;
}

void choose_device(const po::variables_map& given, ProfileOptions& options) {
  const auto& device = given["device"].as<std::string>();
  if (device != "auto" && device != "cpu" && device != "cuda")
    refuse_option("device", '"' + device + '"', "auto, cpu or cuda", "cpu");
  if (device == "cuda" && !cuda_available()) {
    throw UsageError("--device: got cuda, but " + why_no_cuda() + "; for example --device cpu");
  }
  const bool cuda = device == "cuda" || (device == "auto" && cuda_available());
  options.device = cuda ? DeviceKind::cuda : DeviceKind::cpu;
  const std::string dtype =
      given.count("dtype") ? given["dtype"].as<std::string>() : (cuda ? "bf16" : "fp32");
  if (dtype != "fp32" && dtype != "bf16") refuse_option("dtype", '"' + dtype + '"', "fp32 or bf16", "bf16");
  options.bf16 = dtype == "bf16";
  const auto& kernels = given["kernels"].as<std::string>();
  if (kernels != "auto" && kernels != "own" && kernels != "library")
    refuse_option("kernels", '"' + kernels + '"', "auto, own or library", "library");
  options.kernels = kernels == "auto"  ? Kernels::by_device
                    : kernels == "own" ? Kernels::own
                                       : Kernels::library;
}

void choose_launches(const po::variables_map& given, ProfileOptions& options) {
  const auto& graph = given["cuda-graph"].as<std::string>();
  if (graph != "auto" && graph != "on" && graph != "off")
    refuse_option("cuda-graph", '"' + graph + '"', "auto, on or off", "auto");
  const std::string refused = graph_refused(options);
  if (graph == "on" && !refused.empty())
    refuse_option("cuda-graph", "on, but " + refused, "auto or off", "auto");
  options.launches = graph != "off" && refused.empty() ? Launches::by_graph : Launches::by_host;
}

ProfileOptions read_options(const po::variables_map& given) {
  constexpr std::int64_t kMost = 1'000'000'000;
  auto text = [&](const char* option) { return given[option].as<std::string>(); };
  ProfileOptions options;
  choose_model(given, options);
  choose_device(given, options);
  choose_launches(given, options);
  options.skip_token = options.skip_token || given["skip-token"].as<bool>();

  costmodel::ModelShape& model = options.model;
  if (given.count("layers")) {
    const std::int64_t layers = whole_number("layers", text("layers"), 1, 100'000);
    if (layers != model.layers) model.name = "custom";
    model.layers = layers;
  }
  if (given.count("sequence-length")) {
    model.sequence_length = whole_number("sequence-length", text("sequence-length"), 1, kMost);
  }
  if (given.count("local-experts")) {
    options.local_experts = whole_numbers("local-experts", text("local-experts"), model.experts);
  } else if (options.local_experts.empty()) {
    options.local_experts = {model.experts};
  }
  if (given.count("micro-batch-sequences")) {
    options.micro_batch_sequences =
        whole_numbers("micro-batch-sequences", text("micro-batch-sequences"), kMost);
  } else if (options.micro_batch_sequences.empty()) {
    options.micro_batch_sequences = {1};
  }
  if (given.count("threads"))
    options.threads = static_cast<int>(whole_number("threads", text("threads"), 1, 4096));
  options.shared_device = given["shared-device"].as<bool>();
  if (options.shared_device && !given["steps"].defaulted())
    throw UsageError(
        "--steps: got \"" + text("steps") +
        "\" together with --shared-device; expected only one of them, since processes that share a "
        "device end their points after the same time; for example --shared-device --time-budget 4s");
  options.steps = whole_number("steps", text("steps"), kFewestSteps, kMost);
  options.warmup = whole_number("warmup", text("warmup"), 0, kMost);
  options.time_budget_s = duration_s("time-budget", text("time-budget"));
  options.seed = static_cast<std::uint64_t>(
      whole_number("seed", text("seed"), 0, std::numeric_limits<std::int64_t>::max()));
  return options;
}

}  // namespace

int profile_command(const std::vector<std::string>& arguments) {
  const po::options_description options = options_of_profile();
  po::variables_map given;
  try {
    po::store(po::command_line_parser(arguments).options(options).positional({}).run(), given);
  } catch (const po::error& error) {
    throw UsageError(std::string(error.what()) + "; fomoe-train profile --help lists the options");
  }
  if (given.count("help")) {
    std::cout << options << kProfileExamples;
    return 0;
  }
  const ProfileOptions profile_options = read_options(given);
  if (!given.count("output"))
    throw UsageError("--output: got nothing; expected a file name or -; for example --output small.json");
  const auto& output = given["output"].as<std::string>();
  require_writable("output", output);

  costmodel::StepProfile profile = measure_profile(profile_options, std::cerr);
  profile.synchronisation = measure_synchronisation(profile_options, std::cerr);
  profile.source = "fomoe-train profile";
  for (const std::string& argument : arguments) profile.source += ' ' + argument;
  // Record the launch mode that "auto" chose, since times with CUDA graphs differ from times without.
  if (profile_options.device == DeviceKind::cuda && given["cuda-graph"].defaulted())
    profile.source +=
        profile_options.launches == Launches::by_graph ? " --cuda-graph on" : " --cuda-graph off";
  write_answer(output, scenario::step_profile_json(profile));
  return 0;
}

}  // namespace fomoe::trainer
