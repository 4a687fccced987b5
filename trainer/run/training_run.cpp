#include "trainer/run/training_run.hpp"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <ostream>
#include <set>
#include <sstream>

#include "costmodel/compose/make_plan.hpp"
#include "costmodel/compute/operation_seconds.hpp"
#include "costmodel/math/spans.hpp"
#include "costmodel/plan/site_shares.hpp"
#include "experiments/results/round_json.hpp"
#include "platforms/support/atomic_file.hpp"
#include "platforms/support/input_error.hpp"
#include "trainer/device/cuda_device.hpp"
#include "trainer/device/device_info.hpp"
#include "trainer/run/agreement.hpp"
#include "trainer/run/checkpoints.hpp"
#include "trainer/run/measured_report.hpp"
#include "trainer/run/run_log.hpp"

namespace fomoe::trainer {
namespace {

// Enough tokens for several passes to differ, and few enough to generate at once.
constexpr std::int64_t kSyntheticTokens = 1'000'000;

TrainingOptions options_of(const RunRequest& request) {
  const scenario::TrainerSettings& settings = request.settings;
  TrainingOptions options;
  options.inner.learning_rate = settings.learning_rate;
  options.inner.weight_decay = settings.weight_decay;
  options.inner.restart_warmup_steps = static_cast<double>(settings.restart_warmup_steps);
  options.outer.kind = request.scenario.strategy.outer_optimizer;
  options.outer.learning_rate = settings.outer_learning_rate;
  options.outer.momentum = settings.outer_momentum;
  options.warmup_steps = settings.warmup_steps;
  options.clip_norm = settings.clip_norm;
  options.balance_weight = settings.balance_weight;
  options.kept_share = settings.kept_share;
  options.micro_batch_sequences = settings.micro_batch_sequences;
  options.paced = request.paced;
  options.gradient_norms = !request.log.empty();
  options.skip_nonfinite = settings.on_divergence == "skip_step";
  const bool cuda = settings.device == "cuda" || (settings.device == "auto" && cuda_available());
  if (cuda && !cuda_available()) {
    throw UsageError("trainer.device: got cuda, but " + why_no_cuda() +
                     "; for example --set trainer.device=cpu");
  }
  options.device = at::kCPU;
  if (cuda) {
    // Processes of one machine take its GPUs in turn, by local rank.
    const int index = request.launch ? request.launch->local_rank % cuda_device_count() : 0;
    options.device = at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(index));
    set_cuda_device(options.device);
  }
  const bool bf16 = settings.dtype.empty() ? cuda : settings.dtype == "bf16";
  options.dtype = bf16 ? at::kBFloat16 : at::kFloat;
  const std::string refused = recording_refused(request.scenario.model, options.device, options.dtype);
  if (settings.cuda_graph == "on" && !refused.empty()) {
    throw UsageError("trainer.cuda_graph: got on, but " + refused +
                     "; expected auto or off; for example --set trainer.cuda_graph=auto");
  }
  options.launches = settings.cuda_graph != "off" && refused.empty() ? Launches::by_graph : Launches::by_host;
  return options;
}

std::string log_path(const std::string& path, const std::optional<Launch>& launch) {
  if (path.empty() || !launch || launch->rank == 0) return path;
  const std::filesystem::path whole(path);
  return (whole.parent_path() /
          (whole.stem().string() + ".rank-" + std::to_string(launch->rank) + whole.extension().string()))
      .string();
}

/// One process's part of the run.
class Run {
 public:
  Run(const RunRequest& request, std::ostream& progress, bool terminal)
      : request_(request),
        scenario_(request.scenario),
        out_(progress),
        corpus_(request.settings.data.empty()
                    ? Corpus::synthetic(scenario_.model.vocabulary, kSyntheticTokens, scenario_.seed)
                    : Corpus::open(request.settings.data, scenario_.model.vocabulary)),
        plan_(costmodel::make_plan(scenario_)),
        options_(options_of(request)),
        batches_(make_batches(request, corpus_)),
        log_(log_path(request.log, request.launch)) {
    // Checked before any process waits for another one.
    if (needs_of(scenario_, plan_).detached && !request.checkpoints.empty()) {
      throw UsageError(
          "--checkpoints: got a method whose transfers continue into the next round; expected a value of "
          "strategy.overlap_steps with which transfers end within their round, or no --checkpoints; for "
          "example --set strategy.overlap_steps=0");
    }
    if (!request.checkpoints.empty() && !request.resume &&
        !Checkpoints(request.checkpoints, {}).complete({}).empty()) {
      throw UsageError(
          "--checkpoints: got " + request.checkpoints +
          ", which already contains checkpoints; expected another directory, or --resume; for example "
          "--checkpoints " +
          request.checkpoints + " --resume");
    }
    digest_ = determines_weights(request, plan_, options_, corpus_);
    connect();
    executor_.emplace(scenario_, plan_, *transport_, batches_, options_);
    if (rendezvous_ && !request.paced) compare_weights();
    if (!request.checkpoints.empty()) resume();
    progress_.emplace(progress, terminal, scenario_, plan_, first_round_, [this] { return exposed_s(); });
  }

  std::optional<TrainingResult> run() {
    // The process was killed after the last checkpoint. Whoever restarts the run, such as a job manager, must
    // learn that it is complete rather than failed.
    if (first_round_ == plan_.rounds) {
      if (speaks()) out_ << "the run is already complete; no report is written\n";
      return std::nullopt;
    }
    try {
      return run_rounds();
    } catch (const SiteLost& lost) {
      throw SiteLost(rendezvous_ ? rendezvous_->first_failure(lost.what()) : lost.what());
    } catch (const Diverged& diverged) {
      throw Diverged(rendezvous_ ? rendezvous_->first_failure(diverged.what()) : diverged.what());
    }
  }

 private:
  std::optional<TrainingResult> run_rounds() {
    executor_->on_step = [this](const StepRecord& step) {
      count_routing(step);
      log_.step(step, site_name(step.node), executor_->worker(step.node).model().options().experts);
      if (speaks() && step.node == executor_->hosted().front()) progress_->step(step);
    };
    executor_->on_transfer = [this](const TransferRecord& transfer) {
      log_.transfer(transfer, site_name(transfer.node));
    };
    if (request_.paced) executor_->rehearse();
    if (rendezvous_) rendezvous_->start_together();
    executor_->zero_clock();
    reset_peak_memory(options_.device.is_cuda());
    const std::int64_t first_step = steps_done();
    std::map<costmodel::NodeId, double> losses;
    for (std::int64_t round = first_round_; round < plan_.rounds; ++round) {
      executor_->run_round(round);
      const std::int64_t done = round + 1;
      const bool last = done == plan_.rounds;
      progress_->round(done);
      const std::int64_t every = request_.settings.validation_rounds;
      if (last || (every > 0 && done % every == 0)) losses = validate(round);
      if (checkpoints_ && (last || done % request_.settings.checkpoint_rounds == 0))
        checkpoints_->save(*executor_, done);
      log_.flush();
    }
    executor_->finish();
    if (checkpoints_) checkpoints_->wait();
    if (speaks()) progress_->end();
    return report(losses, steps_done() - first_step);
  }

  static Batches make_batches(const RunRequest& request, const Corpus& corpus) {
    try {
      return {corpus, request.scenario.model.sequence_length,
              request.scenario.workload.global_batch_sequences, request.settings.validation_sequences,
              request.scenario.seed};
    } catch (const std::invalid_argument& error) {
      throw UsageError("trainer.data: " + std::string(error.what()));
    }
  }

  [[nodiscard]] bool speaks() const { return !request_.launch || request_.launch->rank == 0; }
  [[nodiscard]] std::string site_name(costmodel::NodeId node) const {
    const int site = plan_.nodes[static_cast<std::size_t>(node)].site;
    return scenario_.platform.sites[static_cast<std::size_t>(site)].name;
  }
  /// Optimiser steps of the run after that many rounds.
  [[nodiscard]] std::int64_t steps_after(std::int64_t rounds) const {
    std::int64_t steps = 0;
    for (const costmodel::RoundClass& kind : plan_.classes) {
      for (std::int64_t i = 0; i < kind.count && kind.round_at(i) < rounds; ++i) steps += kind.steps;
    }
    return steps;
  }
  [[nodiscard]] std::int64_t steps_done() const {
    std::int64_t most = 0;
    for (const costmodel::NodeId node : executor_->hosted()) most = std::max(most, executor_->steps(node));
    return most;
  }

  void connect() {
    if (!request_.launch) {
      transport_ = std::make_unique<InProcessTransport>(plan_.nodes);
      return;
    }
    if (request_.launch->world != scenario_.sites()) {
      throw UsageError(
          "WORLD_SIZE: got " + std::to_string(request_.launch->world) +
          " processes; expected one process for each of the scenario's " + std::to_string(scenario_.sites()) +
          " sites; for example fomoe-train run S.toml --local " + std::to_string(scenario_.sites()));
    }
    std::vector<std::string> names;
    for (const platforms::Site& site : scenario_.platform.sites) names.push_back(site.name);
    rendezvous_.emplace(*request_.launch, names, request_.settings.timeout_s);
    rendezvous_->agree(shared_by_processes(request_, digest_));
    transport_ = rendezvous_->transport(plan_.nodes, options_.device, request_.settings.transport);
  }

  // Averages of different models would be neither. Sites start from the same weights unless something is
  // wrong with a machine or a program.
  void compare_weights() {
    std::vector<Digest> all;
    for (const std::string& text : rendezvous_->gather("weights", to_json(weight_hashes(*executor_))))
      all.push_back(digest_from_json(text));
    std::vector<std::string> names;
    for (const platforms::Site& site : scenario_.platform.sites) names.push_back(site.name);
    const std::string what = disagreement(all, names);
    if (!what.empty()) throw std::runtime_error("the sites start from different weights: " + what);
  }

  // Resumes from the last round for which every process has all its files, complete and of this run.
  void resume() {
    checkpoints_.emplace(request_.checkpoints, digest_);
    if (!request_.resume) return;
    // A process that trains no site has no files and does not restrict the choice. One whose files are all
    // unusable stops the run: to start again from the beginning would waste what was trained.
    constexpr const char *kIdle = "idle", *kNone = "none ";
    std::ostringstream own;
    std::vector<std::string> reasons;
    if (executor_->hosted().empty()) {
      own << kIdle;
    } else {
      const auto usable = checkpoints_->usable(
          executor_->hosted(), [this](std::int64_t rounds) { return steps_after(rounds); }, reasons);
      for (const std::int64_t rounds : usable) own << rounds << ' ';
      if (usable.empty() && !reasons.empty()) own << kNone << reasons.back();
    }
    std::vector<std::string> texts = {own.str()};
    if (rendezvous_) texts = rendezvous_->gather("resume", own.str());
    std::erase(texts, kIdle);
    std::map<std::int64_t, std::size_t> votes;
    for (const std::string& text : texts) {
      if (text.starts_with(kNone)) throw FileError(text.substr(std::string(kNone).size()));
      std::istringstream in(text);
      for (std::int64_t rounds = 0; in >> rounds;) ++votes[rounds];
    }
    for (const auto& [rounds, count] : votes) {
      if (count == texts.size()) first_round_ = rounds;
    }
    for (const std::string& reason : reasons) out_ << reason << "; an older checkpoint is used\n";
    if (first_round_ == 0) {
      if (speaks()) out_ << "no checkpoint in " << request_.checkpoints << "; starting from the beginning\n";
      return;
    }
    checkpoints_->load(*executor_, first_round_);
    if (speaks()) out_ << "resumed after round " << first_round_ << " of " << plan_.rounds << '\n';
  }

  std::map<costmodel::NodeId, double> validate(std::int64_t round) {
    std::map<costmodel::NodeId, double> losses;
    const std::int64_t all = batches_.validation_sequences();
    if (all == 0 || request_.paced) return losses;
    const at::NoGradGuard no_grad;
    for (const costmodel::NodeId node : executor_->hosted()) {
      const costmodel::Node& of = plan_.nodes[static_cast<std::size_t>(node)];
      if (of.kind != costmodel::NodeKind::worker) continue;
      const std::int64_t most = options_.micro_batch_sequences > 0
                                    ? options_.micro_batch_sequences
                                    : std::max<std::int64_t>(1, static_cast<std::int64_t>(of.sequences));
      double sum = 0;
      for (std::int64_t first = 0; first < all; first += most) {
        const std::int64_t count = std::min(most, all - first);
        const Batch batch = batches_.validation(first, count);
        sum += static_cast<double>(count) *
               executor_->worker(node)
                   .model()
                   .loss(batch.tokens.to(options_.device), batch.targets.to(options_.device))
                   .item<double>();
      }
      losses[node] = sum / static_cast<double>(all);
      if (!std::isfinite(losses[node])) executor_->diverged(node, "the validation loss");
      log_.validation(site_name(node), round, losses[node], all);
    }
    return losses;
  }

  // Counts by expert id, since a router of partial replicas without skip-token has columns of local experts
  // only.
  void count_routing(const StepRecord& step) {
    if (request_.routing_counts.empty()) return;
    const ExpertChoice& held = executor_->worker(step.node).model().options().experts;
    auto& layers = routed_[step.node];
    layers.resize(step.routing->counts.size());
    for (std::size_t layer = 0; layer < layers.size(); ++layer) {
      layers[layer].resize(static_cast<std::size_t>(scenario_.model.experts), 0);
      const at::Tensor counts = step.routing->counts[layer].to(at::kCPU);
      const std::vector<int> local = local_experts(scenario_.model, held, static_cast<std::int64_t>(layer));
      for (std::int64_t column = 0; column < counts.numel(); ++column) {
        const auto expert = held.skip_token
                                ? static_cast<std::size_t>(column)
                                : static_cast<std::size_t>(local[static_cast<std::size_t>(column)]);
        layers[layer][expert] += counts[column].item<std::int64_t>();
      }
    }
  }

  // Seconds in which this process's first node was in transfers and did not compute.
  [[nodiscard]] double exposed_s() const {
    if (executor_->hosted().empty()) return 0;
    std::vector<costmodel::Span> transferring, computing;
    for (const costmodel::Interval& interval : executor_->intervals()) {
      if (interval.node != executor_->hosted().front()) continue;
      auto& spans = interval.activity == costmodel::Activity::transfer ? transferring : computing;
      spans.emplace_back(interval.start_s, interval.end_s);
    }
    return costmodel::uncovered(transferring, computing);
  }

  std::optional<TrainingResult> report(const std::map<costmodel::NodeId, double>& losses,
                                       std::int64_t steps) {
    Observation own;
    for (const costmodel::NodeId node : executor_->hosted()) {
      const auto loss = losses.find(node);
      own.nodes.push_back(
          {node, transport_->traffic(node), loss == losses.end() ? -1 : loss->second, routed_[node]});
    }
    own.intervals = executor_->intervals();
    own.peak_memory_bytes = peak_memory_bytes(options_.device.is_cuda());
    std::vector<Observation> all = {own};
    if (rendezvous_) {
      all.clear();
      for (const std::string& text : rendezvous_->collect("report", to_text(own)))
        all.push_back(observation_from(text));
    }
    if (!speaks()) return std::nullopt;
    if (!request_.routing_counts.empty())
      write_file(request_.routing_counts, routing_csv(scenario_, plan_, all));
    ReportContext context;
    context.first_round = first_round_;
    context.steps = steps;
    context.in_turn = !request_.launch.has_value();
    context.paced = request_.paced;
    if (request_.paced) context.pace = costmodel::OperationSeconds(scenario_, plan_).provenance();
    if (const char* links = std::getenv("FOMOE_LINKS")) context.links = links;
    context.validation_sequences = batches_.validation_sequences();
    context.device = options_.device.is_cuda() ? cuda_name() : cpu_name();
    // In turn, sites do not work at the same time, so there is no timeline of a round to draw.
    const std::string round =
        context.in_turn
            ? ""
            : scenario::to_json(measured_round(plan_, all, first_round_), plan_, scenario_.platform).dump();
    return TrainingResult{measured_report(scenario_, plan_, all, context), first_round_, round};
  }

  const RunRequest& request_;
  const costmodel::Scenario& scenario_;
  std::ostream& out_;
  Corpus corpus_;
  costmodel::Plan plan_;
  TrainingOptions options_;
  Digest digest_;  // what determines the weights
  Batches batches_;
  RunLog log_;
  std::optional<Rendezvous> rendezvous_;
  std::unique_ptr<Transport> transport_;
  std::optional<Executor> executor_;
  std::optional<Checkpoints> checkpoints_;
  std::optional<Progress> progress_;
  std::map<costmodel::NodeId, std::vector<std::vector<std::int64_t>>> routed_;
  std::int64_t first_round_ = 0;
};

}  // namespace

std::optional<TrainingResult> train(const RunRequest& request, std::ostream& progress, bool terminal) {
  if (request.threads > 0) at::set_num_threads(request.threads);
  // See measure_profile(): products of denormal numbers are slow. Set before the first parallel region.
  at::globalContext().setFlushDenormal(true);
  return Run(request, progress, terminal).run();
}

}  // namespace fomoe::trainer
