#include "trainer/commands/run_command.hpp"

#include <unistd.h>

#include <boost/program_options.hpp>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "costmodel/compose/make_plan.hpp"
#include "experiments/results/run_record.hpp"
#include "experiments/scenario/scenario_reader.hpp"
#include "experiments/text/units.hpp"
#include "platforms/support/parse_number.hpp"
#include "trainer/commands/command_line.hpp"
#include "trainer/commands/local_launch.hpp"
#include "trainer/commands/report_output.hpp"
#include "trainer/commands/waiting.hpp"
#include "trainer/run/absent_sites.hpp"
#include "trainer/run/agreement.hpp"
#include "trainer/run/site_processes.hpp"
#include "trainer/run/training_run.hpp"
#include "trainer/shared_folder/session.hpp"
#include "trainer/store/secret.hpp"

namespace fomoe::trainer {

namespace po = boost::program_options;

namespace {

constexpr const char* kRunExamples = R"(
How to start it
  --local [N]     starts all processes on this machine: one for each site, or compute.gpus_per_site for each
  --in-turn       trains all sites in one process, one after the other, with the same result
  neither         trains one of several sites; reads RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, which
                  torchrun sets, or Slurm's SLURM_PROCID and SLURM_NTASKS with MASTER_ADDR and MASTER_PORT
                  (see experiments/slurm/train.sbatch); the first site has the first ranks

Examples
  fomoe-train run experiments/scenarios/tiny-training.toml --local --output -
  fomoe-train run experiments/scenarios/tiny-training.toml --local --paced --output -
  fomoe-train run experiments/scenarios/tiny-training.toml --in-turn --seeds 3
  fomoe-train run experiments/scenarios/tiny-training.toml --in-turn --set strategy.method=ddp --log steps.jsonl --output run.json
  torchrun --no-python --nproc-per-node 4 fomoe-train run experiments/scenarios/tiny-training.toml --output run.json
)";

po::options_description run_options() {
  po::options_description options(
      "fomoe-train run SCENARIO.toml [options]: trains the scenario's model across its sites, with the "
      "settings of its [trainer] table");
  // clang-format off
  options.add_options()
    ("help", "print this help")
    ("set", po::value<std::vector<std::string>>()->composing()->value_name("KEY=VALUE"), "override a key of the scenario, for example strategy.local_steps=64; may be repeated")
    ("seed", po::value<std::string>()->value_name("N"), "seed of the weights, data order and placements (default: the scenario's)")
    ("local", po::value<int>()->implicit_value(0)->value_name("[N]"), "start all N processes on this machine: one for each site or, with compute.gpus_per_site, one for each of its GPUs")
    ("seeds", po::value<int>()->value_name("N"), "with --in-turn: train N times with consecutive seeds; the report describes the first training, and gives the mean and spread of the perplexities")
    ("in-turn", po::bool_switch(), "train all sites in this process, one after the other")
    ("paced", po::bool_switch(), "sleep for the time of the scenario's profile or step time instead of computing; transfers are real")
    ("threads", po::value<int>()->value_name("N"), "CPU threads per process (default: the cores and the CPU quota of this process ÷ the processes that share them)")
    ("checkpoints", po::value<std::string>()->value_name("DIR"), "write checkpoints to this directory")
    ("resume", po::bool_switch(), "continue from the last checkpoint in --checkpoints, or start from the beginning if there is none")
    ("start-from", po::value<std::string>()->value_name("DIR"), "start from the newest state in another run's --checkpoints directory, which must have the files of all its sites; the sites, the method and the placement may be others, the model may not")
    ("secret-file", po::value<std::string>()->value_name("FILE"), "let only processes into the run that know the secret in this file, which every site needs; openssl rand -hex 32 makes one")
    ("start-timeout", po::value<std::string>()->value_name("TIME")->default_value("24h"), "time in which all processes must have been started; trainer.timeout holds from then on")
    ("stop-within", po::value<std::string>()->value_name("TIME")->default_value("5min"), "after SIGTERM, with --checkpoints: time in which all sites finish their round, save and end (status 143); 0s: the process ends at once")
    ("interface", po::value<std::string>()->value_name("NAME|ADDRESS"), "network interface, or address of this machine, at which the process listens for other sites (default: the address from which packets to rank 0 leave)")
    ("store", po::value<std::string>()->value_name("DIR"), "with strategy.collective = \"store\": a folder that the processes of all sites share, such as a mounted bucket, through which they exchange")
    ("log", po::value<std::string>()->value_name("FILE.jsonl"), "write a line of JSON for each step; rank r > 0 adds .rank-r to the file name")
    ("routing-counts", po::value<std::string>()->value_name("FILE.csv"), "write how often each site's tokens chose each expert, as input for strategy.routing_counts")
    ("output", po::value<std::string>()->value_name("-|FILE.json"), "write the report in the format of `fomoe simulate` (default: print a summary)");
  // clang-format on
  return options;
}

/// The command line.
class Given {
 public:
  explicit Given(po::variables_map values) : values_(std::move(values)) {}
  /// Whether the option was given; false for a switch that has its default.
  [[nodiscard]] bool has(const char* option) const {
    return values_.count(option) > 0 && !values_[option].defaulted();
  }
  /// The text of an option that has a default.
  [[nodiscard]] std::string value(const char* option) const { return values_[option].as<std::string>(); }
  /// Empty if the option was not given.
  [[nodiscard]] std::string text(const char* option) const {
    return has(option) ? values_[option].as<std::string>() : std::string();
  }
  [[nodiscard]] std::vector<std::string> texts(const char* option) const {
    return has(option) ? values_[option].as<std::vector<std::string>>() : std::vector<std::string>();
  }
  [[nodiscard]] int number(const char* option) const { return values_[option].as<int>(); }

 private:
  po::variables_map values_;
};

void check_options(const Given& given) {
  if (!given.has("scenario")) {
    throw UsageError(
        "SCENARIO.toml: got nothing; expected a scenario file; for example fomoe-train run "
        "experiments/scenarios/tiny-training.toml --local");
  }
  const bool in_turn = given.has("in-turn");
  if (in_turn && given.has("secret-file"))
    throw UsageError(
        "--secret-file: got --in-turn too, with which no process connects to another; expected only one of "
        "the two options; for example --secret-file run.secret --local");
  if (in_turn && given.has("interface"))
    throw UsageError(
        "--interface: got --in-turn too, with which no process connects to another; expected only one of the "
        "two options; for example --interface wg0 --local");
  if (in_turn && given.has("store"))
    throw UsageError(
        "--store: got --in-turn too, with which the store is in memory; expected only one of the two "
        "options; "
        "for example --store /mnt/exchange --local");
  if (in_turn && given.has("local"))
    throw UsageError(
        "--in-turn: got --local too; expected only one of the two options; for example --in-turn");
  if (given.has("resume") && !given.has("checkpoints"))
    throw UsageError(
        "--resume: got no --checkpoints; expected the directory to resume from; for example "
        "--checkpoints run --resume");
  for (const char* option : {"in-turn", "checkpoints", "start-from", "routing-counts", "seeds"}) {
    if (given.has("paced") && given.has(option)) {
      throw UsageError("--paced: got --" + std::string(option) +
                       " too, but a paced run trains nothing; expected only one of the two options; for "
                       "example --paced --local");
    }
  }
}

void check_files(const Given& given) {
  for (const char* option : {"output", "routing-counts"}) require_writable(option, given.text(option));
  require_folder("log", given.text("log"));  // it may be a pipe
}

std::uint64_t seed_of(const std::string& text) {
  const auto seed = parse_number<std::uint64_t>(text);
  if (!seed)
    throw UsageError("--seed: got \"" + text +
                     "\"; expected a whole number of at least 0; for example --seed 42");
  return *seed;
}

scenario::ReadOptions read_options(const Given& given) {
  scenario::ReadOptions how;
  how.compute_required = given.has("paced");
  how.overrides = given.texts("set");
  if (given.has("seed")) how.seed = seed_of(given.text("seed"));
  return how;
}

RunRequest read_request(const Given& given, const scenario::ReadOptions& how) {
  RunRequest request;
  request.scenario = scenario::read_scenario(given.text("scenario"), how);
  request.settings = scenario::read_trainer_settings(given.text("scenario"), how, request.scenario);
  request.checkpoints = given.text("checkpoints");
  request.resume = given.has("resume");
  request.start_from = given.text("start-from");
  request.log = given.text("log");
  request.store = given.text("store");
  request.routing_counts = given.text("routing-counts");
  request.paced = given.has("paced");
  request.all_present = mark_all_present;
  return request;
}

// The number of seeds; 1 if --seeds was not given.
int seeds_of(const Given& given, const scenario::TrainerSettings& settings) {
  if (!given.has("seeds")) return 1;
  const int seeds = given.number("seeds");
  if (seeds < 2)
    throw UsageError("--seeds: got " + std::to_string(seeds) +
                     "; expected a whole number of at least 2; for example --seeds 3");
  if (!given.has("in-turn"))
    throw UsageError(
        "--seeds: got no --in-turn; expected --in-turn, since one process must train all sites; for example "
        "--seeds 3 --in-turn");
  for (const char* option : {"checkpoints", "routing-counts"}) {
    if (given.has(option))
      throw UsageError("--seeds: got --" + std::string(option) +
                       " too, which supports only one training; expected only one of the two options; for "
                       "example --seeds 3 --in-turn");
  }
  if (settings.validation_sequences == 0)
    throw UsageError(
        "--seeds: got no validation sequences; expected at least one validation sequence, to measure "
        "perplexities; for example --seeds " +
        std::to_string(seeds) + " --in-turn --set trainer.validation_sequences=64");
  return seeds;
}

// The number of threads; 0 if --threads was not given.
int threads_of(const Given& given) {
  if (!given.has("threads")) return 0;
  const int threads = given.number("threads");
  if (threads < 1)
    throw UsageError("--threads: got " + std::to_string(threads) +
                     "; expected a whole number of at least 1; for example --threads 2");
  return threads;
}

double time_of(const Given& given, const std::string& option) {
  try {
    return scenario::parse_quantity(given.value(option.c_str()), scenario::Quantity::duration);
  } catch (const scenario::QuantityError& error) {
    throw UsageError("--" + option + ": got " + error.what() +
                     "; expected a time with its unit; for example --" + option + " 12h");
  }
}

/// Decides what happens when a site is lost, and returns whether the others wait for it or go on without it.
bool waits_for_lost_sites(RunRequest& request, const std::vector<int>& processes, bool in_turn) {
  // A scenario may describe failures for its plan only, so without checkpoints its policy does not apply.
  std::string& on_lost_site = request.settings.on_lost_site;
  if (on_lost_site.empty() || (!request.settings.on_lost_site_given && request.checkpoints.empty()))
    on_lost_site = "stop";
  if (on_lost_site == "stop" || in_turn) return false;
  if (request.checkpoints.empty()) {
    throw UsageError("trainer.on_lost_site: got " + on_lost_site +
                     " without --checkpoints; expected a directory of checkpoints, from which the sites go "
                     "on; for example --checkpoints run");
  }
  if (on_lost_site == "drop")
    check_drops(*request.scenario.strategy.method, costmodel::make_plan(request.scenario), processes,
                request.settings.transport);
  return true;
}

/// Returns the exit status of all processes together or, in each of them, its command line.
std::variant<int, std::vector<std::string>> launch_all(const std::vector<std::string>& arguments,
                                                       const Given& given, int processes, int threads,
                                                       bool waits) {
  const int asked = given.number("local");
  if (asked != 0 && asked != processes) {
    const std::string all = std::to_string(processes);
    throw UsageError("--local: got " + std::to_string(asked) +
                     "; expected one process for each GPU of the scenario's sites, " + all +
                     "; for example --local " + all);
  }
  return launch_local(arguments, processes, threads, waits);
}

/// This process's place among the others, from its environment; empty if it trains a single site alone.
std::optional<Launch> launch_among_others(const Given& given, const RunRequest& request,
                                          const std::string& secret, double start_timeout_s, bool waits) {
  std::optional<Launch> launch = launch_from_environment();
  if (!launch && request.scenario.sites() > 1) {
    throw UsageError(
        "RANK: got nothing; expected --local, --in-turn, or the environment variables RANK, WORLD_SIZE, "
        "MASTER_ADDR and MASTER_PORT; for example fomoe-train run " +
        given.text("scenario") + " --local");
  }
  if (!launch) return launch;
  launch->secret = secret;
  launch->interface = given.text("interface");
  // Sites that come back are waited for as long as trainer.lost_site_timeout says.
  const bool comes_back = waits && (waits_again() || request.resume);
  launch->start_timeout_s = comes_back ? 0 : start_timeout_s;
  if (launch->agent_store && !secret.empty()) {
    throw UsageError(
        "--secret-file: got this option under torchrun, which keeps a store of its own that serves anyone; "
        "expected processes that were started with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT alone; for "
        "example TORCHELASTIC_USE_AGENT_STORE=False");
  }
  if (launch->agent_store && waits) {
    throw UsageError("trainer.on_lost_site: got " + request.settings.on_lost_site +
                     " under torchrun, which keeps its own store and starts all processes again itself; "
                     "expected stop, with torchrun --max-restarts and --resume; for example --set "
                     "trainer.on_lost_site=stop");
  }
  return launch;
}

std::string with_seed(const std::string& path, std::uint64_t seed) {
  if (path.empty()) return path;
  const std::filesystem::path whole(path);
  return (whole.parent_path() /
          (whole.stem().string() + ".seed-" + std::to_string(seed) + whole.extension().string()))
      .string();
}

bool on_terminal() { return ::isatty(STDERR_FILENO) != 0; }

/// Trains, and starts this process again if it has to wait for a lost site.
std::optional<TrainingResult> train_or_wait(const RunRequest& request,
                                            const std::vector<std::string>& arguments, bool waits) {
  try {
    return train(request, std::cerr, on_terminal());
  } catch (const SiteLost& lost) {
    if (waits && request.launch)
      wait_for_lost_site(arguments, request.settings.lost_site_timeout_s, lost.what());
    throw;
  }
}

/// The results of all seeds, of which `first` has the first, and the others are trained now. Empty if there
/// is only one.
std::vector<scenario::SeedResult> train_seeds(const Given& given, scenario::ReadOptions how,
                                              const RunRequest& request, const TrainingResult& first,
                                              int seeds) {
  if (seeds == 1) return {};
  std::vector<scenario::SeedResult> results = {{request.scenario.seed, first.report.quality->perplexity}};
  for (int more = 1; more < seeds; ++more) {
    how.seed = request.scenario.seed + static_cast<std::uint64_t>(more);
    RunRequest again = request;  // the sites of the scenario may also depend on the seed
    again.scenario = scenario::read_scenario(given.text("scenario"), how);
    again.log = with_seed(request.log, *how.seed);
    std::cerr << "training with seed " << *how.seed << '\n';
    results.push_back({*how.seed, train(again, std::cerr, on_terminal())->report.quality->perplexity});
  }
  return results;
}

}  // namespace

int run_command(const std::vector<std::string>& arguments) {
  const po::options_description options = run_options();
  auto parsed = parse_command("run", options, "scenario", arguments, kRunExamples);
  if (!parsed) return 0;
  const Given given(std::move(*parsed));
  check_options(given);
  check_files(given);
  const bool in_turn = given.has("in-turn");
  const scenario::ReadOptions how = read_options(given);
  RunRequest request = read_request(given, how);
  const std::vector<int> processes = processes_of_sites(request.scenario, request.paced);
  const int all = std::accumulate(processes.begin(), processes.end(), 0);
  const int seeds = seeds_of(given, request.settings);
  request.threads = threads_of(given);
  request.stop_within_s = time_of(given, "stop-within");
  const double start_timeout_s = time_of(given, "start-timeout");
  const std::string secret = given.has("secret-file") ? read_secret(given.text("secret-file")) : "";
  const bool waits = waits_for_lost_sites(request, processes, in_turn);
  if (!in_turn && all > request.scenario.sites())
    check_parts(request.scenario, costmodel::make_plan(request.scenario), processes);
  if (!in_turn) check_store(request.store, request.scenario.strategy);
  if (given.has("local")) {
    const auto launched = launch_all(arguments, given, all, request.threads, waits);
    if (const auto* of_rank = std::get_if<std::vector<std::string>>(&launched)) return run_command(*of_rank);
    return std::get<int>(launched);
  }
  if (!in_turn) request.launch = launch_among_others(given, request, secret, start_timeout_s, waits);

  // Read the sources before training, since the files may change meanwhile.
  scenario::RunRecord record = scenario::new_run_record();
  record.paced = request.paced;
  record.in_turn = !request.launch.has_value();
  record.source = scenario::scenario_source(given.text("scenario"), how);
  const std::optional<TrainingResult> result = train_or_wait(request, arguments, waits);
  if (!result) {
    write_report_again(given.text("output"), request);
    return 0;
  }
  record.seeds = train_seeds(given, how, request, *result, seeds);
  write_report(given.text("output"), request, *result, std::move(record));
  if (!result->log_problem.empty()) throw std::runtime_error("--log: " + result->log_problem);
  return 0;
}

}  // namespace fomoe::trainer
