#include "trainer/commands/report_output.hpp"

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <utility>
#include <vector>

#include "costmodel/math/replicas.hpp"
#include "costmodel/plan/method.hpp"
#include "platforms/support/atomic_file.hpp"
#include "platforms/support/whole_file.hpp"
#include "trainer/commands/command_line.hpp"
#include "trainer/run/agreement.hpp"

namespace fomoe::trainer {

namespace {

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
  if (report.round.upkeep_s > 0)
    std::printf("  validation, checkpoints and logs between rounds: %.1f s in the run\n",
                report.round.upkeep_s * static_cast<double>(report.round.count));
  std::printf("  %.4g MB sent per site and round, %.4g bytes per token\n",
              report.bytes_sent_per_site_per_round / 1e6, report.bytes_per_token);
  if (report.quality)
    std::printf("  perplexity %.4g (%s)\n", report.quality->perplexity, report.quality->source.c_str());
  for (const std::string& note : report.notes) std::printf("  note: %s\n", note.c_str());
}

/// The file in which the first site keeps the report beside the checkpoints; empty without checkpoints.
std::string kept_report(const RunRequest& request) {
  return request.checkpoints.empty() ? "" : request.checkpoints + "/report.json";
}

/// A report is the result of hours, so it is not lost with the disk of --output.
void write_output(const std::string& output, const std::string& report, const std::string& kept) {
  try {
    write_answer(output, report);
  } catch (const std::exception& error) {
    if (!kept.empty())
      throw std::runtime_error(std::string(error.what()) + "; the report is in " + kept +
                               ", and the same command with --resume writes it again");
    if (output == "-") throw;
    write_answer("-", report);
    throw std::runtime_error(std::string(error.what()) + "; the report was printed instead");
  }
}

}  // namespace

void write_report(const std::string& output, const RunRequest& request, const TrainingResult& result,
                  scenario::RunRecord record) {
  record.whole = result.first_round == 0;
  record.round_timeline = result.round_timeline;
  record.validation = result.validation;
  record.code = code_version();
  record.threads = result.threads;
  record.waited_share = result.waited_share;
  record.connections = result.connections;
  record.all = result.all;
  const std::string json = scenario::run_report_json(result.report, request.scenario, record);
  std::string kept = kept_report(request);
  try {
    if (!kept.empty()) write_file(kept, json);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    kept.clear();
  }
  if (output.empty()) {
    print_summary(result.report, request.scenario);
    if (record.all)
      std::printf("  the whole run, with %lld restarts, took %.1f s, of which %.1f s were lost\n",
                  static_cast<long long>(record.all->restarts), record.all->wall_clock_s, record.all->lost_s);
    if (!record.seeds.empty()) print_seeds(record.seeds);
  } else {
    write_output(output, json, kept);
  }
  // `fomoe-wan run --report` sets this variable.
  if (const char* wanted = std::getenv("FOMOE_REPORT"); wanted != nullptr && *wanted != 0)
    write_file(wanted, json);
}

void write_report_again(const std::string& output, const RunRequest& request) {
  const std::string kept = kept_report(request);
  if (kept.empty() || (request.launch && request.launch->rank != 0)) return;
  if (!path_exists(kept)) {
    std::cerr << "no report is written, since " << kept << " does not exist\n";
  } else if (output.empty()) {
    std::cerr << "its report is in " << kept << '\n';
  } else {
    write_output(output, whole_file(kept).value(), kept);
  }
}

}  // namespace fomoe::trainer
