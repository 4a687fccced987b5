#include "experiments/cli/execute.hpp"

#include <fmt/format.h>

#include <charconv>

#include "costmodel/formula/closed_form.hpp"
#include "experiments/cli/options.hpp"

namespace fomoe::commands {

namespace po = boost::program_options;

void add_engine_options(po::options_description& options) {
  options.add_options()(
      "engine", po::value<std::string>()->default_value("simulated")->value_name("NAME"),
      "simulated: simulates every flow on shared links; closed-form: a formula that is exact for identical "
      "sites, and that uses the slowest link for all sites if they differ")(
      "rounds", po::value<std::string>()->value_name("N|all"),
      "number of rounds to execute of each kind of round; the other rounds are assumed to last as long "
      "(default: 3 if rounds are equal, otherwise 8, or 4 if these agree within 1 %)")(
      "no-bundle",
      "simulate the flows of each group of expert owners separately, which is slower (default: flows between "
      "the same two sites are merged)");
}

Engine read_engine(const po::variables_map& values) {
  Engine engine;
  engine.simulated =
      choice("--engine", values["engine"].as<std::string>(), {"simulated", "closed-form"}) == "simulated";
  engine.options.bundle = values.count("no-bundle") == 0;
  if (values.count("rounds")) {
    const std::string text = values["rounds"].as<std::string>();
    std::int64_t rounds = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rounds);
    if (text == "all") {
      engine.options.all_rounds = true;
    } else if (error != std::errc{} || end != text.data() + text.size() || rounds < 1) {
      throw UsageError(fmt::format(
          "--rounds: got \"{}\"; expected a whole number of at least 1, or all; for example --rounds 8",
          text));
    } else {
      engine.options.rounds = rounds;
    }
    if (!engine.simulated) message("--rounds has no effect: the closed form covers every round");
  }
  return engine;
}

sim::SimulatedRun execute(const costmodel::Scenario& scenario, const Engine& engine) {
  if (engine.simulated) return sim::simulate_scenario(scenario, engine.options);
  sim::SimulatedRun run;
  run.report = costmodel::closed_form(scenario);
  return run;
}

}  // namespace fomoe::commands
