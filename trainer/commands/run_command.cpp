#include "trainer/commands/run_command.hpp"

#include <unistd.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <limits>
#include <numeric>
#include <string_view>

#include "costmodel/compose/make_plan.hpp"
#include "costmodel/math/replicas.hpp"
#include "costmodel/plan/method.hpp"
#include "experiments/results/run_record.hpp"
#include "experiments/scenario/scenario_reader.hpp"
#include "platforms/support/atomic_file.hpp"
#include "platforms/support/parse_number.hpp"
#include "trainer/commands/command_line.hpp"
#include "trainer/commands/local_launch.hpp"
#include "trainer/commands/waiting.hpp"
#include "trainer/run/absent_sites.hpp"
#include "trainer/run/agreement.hpp"
#include "trainer/run/site_processes.hpp"
#include "trainer/run/training_run.hpp"
#include "trainer/store/secret.hpp"

namespace fomoe::trainer {

namespace po = boost::program_options;

namespace {

constexpr const char* kExamples = R"(
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

po::options_description described() {
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
    ("interface", po::value<std::string>()->value_name("NAME|ADDRESS"), "network interface, or address of this machine, at which the process listens for other sites (default: the address from which packets to rank 0 leave)")
    ("log", po::value<std::string>()->value_name("FILE.jsonl"), "write a line of JSON for each step; rank r > 0 adds .rank-r to the file name")
    ("routing-counts", po::value<std::string>()->value_name("FILE.csv"), "write how often each site's tokens chose each expert, as input for strategy.routing_counts")
    ("output", po::value<std::string>()->value_name("-|FILE.json"), "write the report in the format of `fomoe simulate` (default: print a summary)");
  // clang-format on
  return options;
}

[[noreturn]] void refuse(const std::string& option, const std::string& got, const std::string& expected,
                         const std::string& example) {
  throw UsageError("--" + option + ": got " + got + "; expected " + expected + "; for example --" + option +
                   " " + example);
}

std::uint64_t seed_of(const std::string& text) {
  const auto seed = parse_number<std::uint64_t>(text);
  if (!seed) refuse("seed", '"' + text + '"', "a whole number of at least 0", "42");
  return *seed;
}

// Checked before hours of training rather than after them.
void check_output(const std::string& option, const std::string& path) {
  const std::filesystem::path folder = std::filesystem::absolute(path).parent_path();
  if (!std::filesystem::is_directory(folder))
    refuse(option, '"' + path + '"', "a file in an existing folder", "run.json");
}

// The number of seeds; 1 if --seeds was not given.
int seeds_of(const po::variables_map& given) {
  if (!given.count("seeds")) return 1;
  const int seeds = given["seeds"].as<int>();
  if (seeds < 2) refuse("seeds", std::to_string(seeds), "a whole number of at least 2", "3");
  if (!given["in-turn"].as<bool>())
    refuse("seeds", "no --in-turn", "--in-turn, since one process must train all sites", "3 --in-turn");
  for (const char* option : {"checkpoints", "routing-counts"}) {
    if (given.count(option))
      refuse("seeds", std::string("--") + option + " too, which supports only one training",
             "only one of the two options", "3 --in-turn");
  }
  return seeds;
}

std::string with_seed(const std::string& path, std::uint64_t seed) {
  if (path.empty()) return path;
  const std::filesystem::path whole(path);
  return (whole.parent_path() /
          (whole.stem().string() + ".seed-" + std::to_string(seed) + whole.extension().string()))
      .string();
}

void print_seeds(const std::vector<scenario::SeedResult>& seeds) {
  std::vector<double> perplexities;
  for (const scenario::SeedResult& one : seeds) perplexities.push_back(one.perplexity);
  const costmodel::Spread spread = costmodel::spread_of(perplexities);
  std::printf("  perplexity over %zu seeds: mean %.4g, standard deviation %.3g\n", seeds.size(), spread.mean,
              spread.standard_deviation);
}

void print_summary(const costmodel::RunReport& report, const costmodel::Scenario& scenario) {
  std::printf("%s: %lld steps, %lld rounds, %lld sites in %.1f s\n", scenario.strategy.method->name.c_str(),
              static_cast<long long>(report.optimizer_steps), static_cast<long long>(report.round.count),
              static_cast<long long>(scenario.sites()), report.wall_clock_s);
  std::printf("  %.4g tokens/s, utilisation %.1f %%, exposed communication %.1f %%, idle %.1f %%\n",
              report.tokens_per_s, 100 * report.compute_utilization,
              100 * report.round.exposed_communication_s / report.round.duration_s,
              100 * report.round.idle_s / report.round.duration_s);
  std::printf("  %.4g MB sent per site and round, %.4g bytes per token\n",
              report.bytes_sent_per_site_per_round / 1e6, report.bytes_per_token);
  if (report.quality)
    std::printf("  perplexity %.4g (%s)\n", report.quality->perplexity, report.quality->source.c_str());
  for (const std::string& note : report.notes) std::printf("  note: %s\n", note.c_str());
}

}  // namespace

int run_command(const std::vector<std::string>& arguments) {
  const po::options_description options = described();
  const auto parsed = parse_command("run", options, "scenario", arguments, kExamples);
  if (!parsed) return 0;
  const po::variables_map& given = *parsed;
  const auto text = [&](const char* option) {
    return given.count(option) ? given[option].as<std::string>() : std::string();
  };
  if (!given.count("scenario")) {
    throw UsageError(
        "SCENARIO.toml: got nothing; expected a scenario file; for example fomoe-train run "
        "experiments/scenarios/tiny-training.toml --local");
  }
  const bool in_turn = given["in-turn"].as<bool>(), local = given.count("local") > 0;
  if (in_turn && given.count("secret-file"))
    refuse("secret-file", "--in-turn too, with which no process connects to another",
           "only one of the two options", "run.secret --local");
  if (in_turn && given.count("interface"))
    refuse("interface", "--in-turn too, with which no process connects to another",
           "only one of the two options", "wg0 --local");
  if (in_turn && local)
    throw UsageError(
        "--in-turn: got --local too; expected only one of the two options; for example --in-turn");
  if (given["resume"].as<bool>() && !given.count("checkpoints"))
    throw UsageError(
        "--resume: got no --checkpoints; expected the directory to resume from; for example "
        "--checkpoints run --resume");
  const bool paced = given["paced"].as<bool>();
  for (const char* option : {"in-turn", "checkpoints", "start-from", "routing-counts", "seeds"}) {
    if (paced && given.count(option) && !(std::string_view(option) == "in-turn" && !in_turn)) {
      throw UsageError("--paced: got --" + std::string(option) +
                       " too, but a paced run trains nothing; expected only one of the two options; for "
                       "example --paced --local");
    }
  }
  for (const char* option : {"output", "log", "routing-counts"}) {
    if (!text(option).empty() && text(option) != "-") check_output(option, text(option));
  }

  scenario::ReadOptions how;
  how.compute_required = paced;
  if (given.count("set")) how.overrides = given["set"].as<std::vector<std::string>>();
  if (given.count("seed")) how.seed = seed_of(text("seed"));
  RunRequest request;
  request.scenario = scenario::read_scenario(text("scenario"), how);
  request.settings = scenario::read_trainer_settings(text("scenario"), how, request.scenario);
  const std::vector<int> processes = processes_of_sites(request.scenario, paced);
  request.checkpoints = text("checkpoints");
  request.resume = given["resume"].as<bool>();
  request.start_from = text("start-from");
  request.log = text("log");
  request.routing_counts = text("routing-counts");
  request.paced = paced;
  const int seeds = seeds_of(given);
  if (seeds > 1 && request.settings.validation_sequences == 0)
    refuse("seeds", "no validation sequences", "at least one validation sequence, to measure perplexities",
           std::to_string(seeds) + " --in-turn --set trainer.validation_sequences=64");
  if (given.count("threads")) {
    request.threads = given["threads"].as<int>();
    if (request.threads < 1)
      refuse("threads", std::to_string(request.threads), "a whole number of at least 1", "2");
  }

  const std::string secret = given.count("secret-file") ? read_secret(text("secret-file")) : std::string();

  // A scenario may describe failures for its plan only, so without checkpoints its policy does not apply.
  std::string& on_lost_site = request.settings.on_lost_site;
  if (on_lost_site.empty() || (!request.settings.on_lost_site_given && request.checkpoints.empty()))
    on_lost_site = "stop";
  const bool waits = request.settings.on_lost_site != "stop" && !in_turn;
  if (waits && request.checkpoints.empty()) {
    throw UsageError(
        "trainer.on_lost_site: got " + request.settings.on_lost_site +
        " without --checkpoints; expected a directory of checkpoints, from which the sites go on; "
        "for example --checkpoints run");
  }
  if (waits && request.settings.on_lost_site == "drop")
    check_drops(costmodel::make_plan(request.scenario), processes, request.settings.transport);

  if (!in_turn && std::accumulate(processes.begin(), processes.end(), 0) > request.scenario.sites())
    check_parts(request.scenario, costmodel::make_plan(request.scenario), processes);
  if (local) {
    const int asked = given["local"].as<int>(), all = std::accumulate(processes.begin(), processes.end(), 0);
    if (asked != 0 && asked != all) {
      refuse("local", std::to_string(asked),
             "one process for each GPU of the scenario's sites, " + std::to_string(all), std::to_string(all));
    }
    return launch_local(arguments, all, request.threads, waits);
  }
  if (!in_turn) {
    request.launch = launch_from_environment();
    if (!request.launch && request.scenario.sites() > 1) {
      throw UsageError(
          "RANK: got nothing; expected --local, --in-turn, or the environment variables RANK, WORLD_SIZE, "
          "MASTER_ADDR and MASTER_PORT; for example fomoe-train run " +
          text("scenario") + " --local");
    }
  }
  if (request.launch) request.launch->secret = secret;
  if (request.launch) request.launch->interface = text("interface");
  if (request.launch && request.launch->agent_store && !secret.empty()) {
    throw UsageError(
        "--secret-file: got this option under torchrun, which keeps a store of its own that serves anyone; "
        "expected "
        "processes that were started with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT alone; for example "
        "TORCHELASTIC_USE_AGENT_STORE=False");
  }
  if (waits && request.launch && request.launch->agent_store) {
    throw UsageError("trainer.on_lost_site: got " + request.settings.on_lost_site +
                     " under torchrun, which keeps its own store and starts all processes again itself; "
                     "expected stop, with "
                     "torchrun --max-restarts and --resume; for example --set trainer.on_lost_site=stop");
  }
  // Read the sources before training, since the files may change meanwhile.
  scenario::RunRecord record = scenario::new_run_record();
  record.paced = paced;
  record.in_turn = !request.launch.has_value();
  record.source = scenario::scenario_source(text("scenario"), how);
  const bool terminal = isatty(STDERR_FILENO) != 0;
  request.all_present = mark_all_present;
  std::optional<TrainingResult> result;
  try {
    result = train(request, std::cerr, terminal);
  } catch (const SiteLost& lost) {
    if (waits && request.launch)
      wait_for_lost_site(arguments, request.settings.lost_site_timeout_s, lost.what());
    throw;
  }
  if (!result) return 0;
  if (seeds > 1) record.seeds = {{request.scenario.seed, result->report.quality->perplexity}};
  for (int more = 1; more < seeds; ++more) {
    how.seed = request.scenario.seed + static_cast<std::uint64_t>(more);
    RunRequest again = request;  // the sites of the scenario may also depend on the seed
    again.scenario = scenario::read_scenario(text("scenario"), how);
    again.log = with_seed(request.log, *how.seed);
    std::cerr << "training with seed " << *how.seed << '\n';
    record.seeds.push_back({*how.seed, train(again, std::cerr, terminal)->report.quality->perplexity});
  }
  record.whole = result->first_round == 0;
  record.round_timeline = result->round_timeline;
  record.validation = result->validation;
  record.code = code_version();
  record.threads = result->threads;
  record.waited_share = result->waited_share;
  const std::string json = scenario::run_report_json(result->report, request.scenario, record);
  if (text("output").empty()) {
    print_summary(result->report, request.scenario);
    if (seeds > 1) print_seeds(record.seeds);
  } else if (text("output") == "-") {
    std::cout << json << std::flush;
  } else {
    write_file(text("output"), json);
  }
  // `fomoe-wan run --report` sets this variable.
  if (const char* wanted = std::getenv("FOMOE_REPORT"); wanted != nullptr && *wanted != 0)
    write_file(wanted, json);
  return 0;
}

}  // namespace fomoe::trainer
