// Tests of mistakes on the command line and in the optional tables of a scenario.
#include <doctest/doctest.h>

#include "tests/experiments/scenario/wrong_scenarios.hpp"

using namespace fomoe::tests;

TEST_CASE("wrong settings on the command line") {
  check_refused({
      // The command line
      {"", "", "--set strategy.local_stpes=4",
       "--set strategy.local_stpes=4: strategy.local_stpes: got an unknown key; expected " + kStrategyKeys +
           "; for example --set strategy.local_steps=32; did you mean local_steps?"},
      {"", "", "--set strategy.local_steps=many",
       "--set strategy.local_steps=many: strategy.local_steps: got \"many\"; expected a whole number of at "
       "least 1; for example "
       "--set strategy.local_steps=32"},
      {"", "", "--set strategy.expert_overlap=7",
       "--set strategy.expert_overlap=7: strategy.expert_overlap: got 7; expected 1 to 4 sites; "
       "for example 4"},
      {"", "", "--set platform.sites=16 --set strategy.expert_overlap=1",
       "--set strategy.expert_overlap=1: strategy.expert_overlap: got 1; expected 2 to 16 sites, so that "
       "each "
       "of the 16 sites holds at least one of the 8 experts of a layer; for example 2"},
      {"", "", "--set nonsense",
       "--set nonsense: nonsense: got no key=value; expected one key=value; for example --set "
       "strategy.local_steps=64"},
      {"", "", "--set a.b.c=1",
       "--set a.b.c=1: a.b.c: got a key of another form; expected table.key; for example --set "
       "strategy.local_steps=64"},
      {"", "", "--set strategy.method=",
       "--set strategy.method=: strategy.method: got no value after =; expected key=value; for example --set "
       "strategy.local_steps=64"},
      {"", "", "--set strateggy.method=ddp",
       "--set strateggy.method=ddp: strateggy: got an unknown table; expected " + kTables +
           "; did you mean [strategy]?"},
      {"", "", "--set strategy.method=fomo",
       "--set strategy.method=fomo: strategy.method: got \"fomo\"; expected " + kMethods +
           "; "
           "for example --set strategy.method=fomoe; did you mean \"fomoe\"?"},
      {"", "", "--set strategy={method=ddp}",
       "--set strategy={method=ddp}: strategy: got {method=ddp}; expected a TOML value or a bare word; for "
       "example --set strategy.local_steps=64"},
      {"", "", "--set strategy={local_steps=2}",
       "--set strategy={local_steps=2}: strategy: got a table; expected one key; for example --set "
       "strategy.local_steps=64"},
      {"", "", "--seed x",
       "--set seed=x: seed: got \"x\"; expected a whole number of at least 0; for example --set seed=7"},
  });
}

TEST_CASE("wrong money, energy, traffic, quality and failures") {
  check_refused({
      // Money, energy, traffic and quality
      {"", "[prices]\ngpu_hour = 2.5\n", "",
       ":18: prices.gpu_hour: got 2.5 (no currency); expected " + kMoney + "gpu_hour = \"2.50USD\""},
      {"", "[prices]\ngpu_hour = \"2.5\"\n", "",
       ":18: prices.gpu_hour: got \"2.5\" (no currency); expected " + kMoney + "gpu_hour = \"2.50USD\""},
      {"", "[prices]\ngpu_hour = \"-2USD\"\n", "",
       ":18: prices.gpu_hour: got \"-2USD\" (negative); expected " + kMoney + "gpu_hour = \"2.50USD\""},
      {"", "[prices]\ngpu_hour = \"2dollars\"\n", "",
       ":18: prices.gpu_hour: got \"2dollars\" (unknown currency dollars); expected " + kMoney +
           "gpu_hour = \"2.50USD\""},
      {"", "[prices]\ngpu_hour = \"2USD\"\negress_per_gb = \"1EUR\"\n", "",
       ":19: prices.egress_per_gb: got EUR; expected USD, the currency of gpu_hour; for example "
       "egress_per_gb "
       "= "
       "\"0.08USD\""},
      {"", "[prices]\nport_month = \"2USD\"\n", "",
       ":17: prices.gpu_hour: got nothing; expected a price file, or gpu_hour; for example gpu_hour = "
       "\"2.50USD\""},
      {"", "[prices]\ngpu_hour = \"2USD\"\npricing = \"spot\"\n", "",
       ":19: prices.pricing: got pricing without file; expected pricing only together with file; for example "
       "file = \"../data/prices-example.toml\""},
      {"", "[prices]\nfile = \"p.toml\"\nkwh = \"2USD\"\n", "",
       ":19: prices.kwh: got both kwh and file; expected prices only in the price file; for example kwh = "
       "\"0.12USD\""},
      {"", "[prices]\npricing = \"lease\"\nfile = \"p.toml\"\n", "",
       ":18: prices.pricing: got \"lease\"; expected one of \"on_demand\", \"spot\", \"owned\"; for example "
       "pricing = "
       "\"spot\""},
      {"", "[energy]\ngpu_power = \"700\"\nidle_share = 0.2\n", "",
       ":18: energy.gpu_power: got \"700\" (no unit); expected a power above zero in quotes, with a unit (W "
       "kW "
       "MW); for "
       "example gpu_power = \"700W\""},
      {"", "[energy]\ngpu_power = \"700W\"\n", "",
       ":17: energy.idle_share: got nothing; expected a number above 0 and up to 1, or a percentage; for "
       "example idle_share = "
       "0.2"},
      {"", "[energy]\ngpu_power = \"700W\"\nidle_share = 0.2\npue = 0.9\n", "",
       ":20: energy.pue: got 0.9; expected a number of at least 1; for example pue = 1.2"},
      {"", "[traffic]\ndata_site = \"site-9\"\n", "",
       ":18: traffic.data_site: got \"site-9\"; expected the name of a site: \"site-0\", \"site-1\", "
       "\"site-2\", "
       "\"site-3\"; for example data_site = \"site-0\"; did you mean \"site-0\"?"},
      {"", "[traffic]\ncheckpoint_rounds = 3\n", "",
       ":18: traffic.checkpoint_rounds: got checkpoint_rounds without checkpoint_site; expected "
       "checkpoint_rounds only together with checkpoint_site; for example checkpoint_site = \"site-0\""},
      {"", "[quality]\nmodel = \"oracle\"\n", "",
       ":18: quality.model: got \"oracle\"; expected one of \"published\", \"paper-table\", "
       "\"diloco-scaling-law\"; for example model = \"published\""},
      {"", "[quality]\nmodel = \"paper-table\"\nfile = \"t.csv\"\n", "",
       ":19: quality.file: got both file and model; expected only one of them; for example file = "
       "\"../data/paper_exp1.csv\""},
      {"", "[failures]\nsite_mtbf = \"7d\"\n", "",
       ":17: failures.checkpoint_cost: got nothing; expected checkpoint_cost or storage_bandwidth; for "
       "example "
       "checkpoint_cost = \"20s\""},
      {"", "[failures]\nsite_mtbf = \"0s\"\ncheckpoint_cost = \"20s\"\n", "",
       ":18: failures.site_mtbf: got \"0s\" (zero); expected a time above zero in quotes, with a unit (ns us "
       "ms s "
       "min h d); for example site_mtbf = \"7d\""},
      {"", "[failures]\ncheckpoint_cost = \"20s\"\ntimeout = \"1min\"\n", "",
       ":19: failures.timeout: got timeout with policy = \"wait\"; expected timeout only with policy = "
       "\"drop\"; for example timeout = \"2min\""},
      {"", "[failures]\ncheckpoint_cost = \"20s\"\noutages = [\"site-2 after 3min\"]\n", "",
       ":19: failures.outages: got \"site-2 after 3min\"; expected \"SITE at TIME for TIME\", such as "
       "\"site-0 "
       "at 10min for 3min\"; for example outages = [\"site-1 at 10min for 3min\"]"},
      {"", "[failures]\ncheckpoint_cost = \"20s\"\noutages = [\"site-9 at 3min for 1min\"]\n", "",
       ":19: failures.outages: got \"site-9 at 3min for 1min\", where \"site-9\" is not the name of a site; "
       "expected \"SITE at TIME for TIME\", such as \"site-0 at 10min for 3min\"; for example outages = "
       "[\"site-1 at 10min for 3min\"]"},
      {"",
       "[failures]\ncheckpoint_cost = \"20s\"\noutages = [\"site-1 at 9min for 2min\", \"site-1 at 10min for "
       "1s\"]\n",
       "",
       ":19: failures.outages: got an outage of site-1 that begins before the end of another one; expected "
       "outages of a site one after the other; for example outages = [\"site-1 at 10min for 3min\"]"},
      {"", "[failures]\ncheckpoint_cost = \"20s\"\npolicy = \"hope\"\n", "",
       ":19: failures.policy: got \"hope\"; expected one of \"wait\", \"drop\"; for example policy = "
       "\"drop\""},
      {"", "[failures]\ncheckpoint_cost = \"20s\"\npreemptions_per_day = -1\n", "",
       ":19: failures.preemptions_per_day: got -1; expected a number above 0 and up to 10000; for example "
       "preemptions_per_day = 0.5"},
  });
}

TEST_CASE("mistakes on the command line give exit status 2 and a correct example") {
  struct Line {
    std::string command, message;
  };
  const std::vector<Line> lines = {
      {"fomoe", "fomoe: expected a command; see fomoe --help"},
      {"fomoe simulat s.toml",
       "fomoe: simulat: unknown command; expected one of cost, simulate, compare, plan, solve, explain, "
       "explore, report, sweep, reproduce, probe, calibrate, validate, profile, model, list; "
       "for example "
       "fomoe list methods; did you mean simulate?"},
      {"fomoe simulate",
       "fomoe: expected one scenario, got 0; for example fomoe simulate "
       "experiments/scenarios/two-sites.toml"},
      {"fomoe simulate s.toml t.toml",
       "fomoe: expected one scenario, got 2; for example fomoe simulate "
       "experiments/scenarios/two-sites.toml"},
      {"fomoe simulate absent.toml",
       "absent.toml:1: scenario: got no readable file; expected a file in TOML or JSON; for example "
       "experiments/scenarios/two-sites.toml"},
      {"fomoe simulate s.toml --outptu -",
       "fomoe: --outptu: unknown option; did you mean --output?; see fomoe simulate --help"},
      {"fomoe simulate s.toml --output a.txt",
       "fomoe: --output: got \"a.txt\"; expected - or a file that ends in .json or .csv; for example "
       "--output result.json"},
      {"fomoe simulate s.toml --output no/a.json",
       "fomoe: --output: got \"no/a.json\", in a folder that does not exist; expected an existing folder; "
       "for example mkdir -p no"},
      {"fomoe simulate s.toml --engine simulatd",
       "fomoe: --engine: got \"simulatd\"; expected one of simulated, closed-form; for example --engine "
       "simulated; did you mean simulated?"},
      {"fomoe simulate s.toml --rounds 0",
       "fomoe: --rounds: got \"0\"; expected a whole number of at least 1, or all; for example --rounds 8"},
      {"fomoe simulate s.toml --engine closed-form --trace t.json",
       "fomoe: --trace: got this option with --engine closed-form, which has no timeline; expected --engine "
       "simulated; for example --engine simulated --trace t.json"},
      {"fomoe cost s.toml --accounting papr",
       "fomoe: --accounting: got \"papr\"; expected one of mechanism, paper; for example --accounting "
       "mechanism; did you mean paper?"},
      {"fomoe compare s.toml",
       "fomoe: --case: got none; expected at least one; for example --case strategy.method=ddp"},
      {"fomoe list metods",
       "fomoe: fomoe list: got \"metods\"; expected one of methods, models, keys, platforms, accelerators, "
       "profiles, quality; for example fomoe list methods; did you mean methods?"},
  };
  const Folder folder;
  write_all(folder / "s.toml", kGood);
  for (const Line& line : lines) {
    const Ran ran = run_in(folder.path(), line.command);
    CHECK(ran.exit_status == 2);
    CHECK(ran.err == line.message + "\n");
    CHECK(ran.out.empty());
  }
}
