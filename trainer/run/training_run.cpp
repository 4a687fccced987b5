#include "trainer/run/training_run.hpp"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <ostream>

#include "costmodel/compose/make_plan.hpp"
#include "costmodel/compute/operation_seconds.hpp"
#include "costmodel/timeline/round_timeline.hpp"
#include "experiments/json/json.hpp"
#include "experiments/results/round_json.hpp"
#include "platforms/support/atomic_file.hpp"
#include "platforms/support/input_error.hpp"
#include "trainer/device/cpu_share.hpp"
#include "trainer/device/cuda_device.hpp"
#include "trainer/execution/checkpoints.hpp"
#include "trainer/execution/node_name.hpp"
#include "trainer/record/interval_stream.hpp"
#include "trainer/record/upkeep_clock.hpp"
#include "trainer/run/absent_sites.hpp"
#include "trainer/run/agreement.hpp"
#include "trainer/run/measured_report.hpp"
#include "trainer/run/rejoining.hpp"
#include "trainer/run/router_figures.hpp"
#include "trainer/run/run_data.hpp"
#include "trainer/run/run_history.hpp"
#include "trainer/run/run_log.hpp"
#include "trainer/run/site_processes.hpp"
#include "trainer/run/starting_point.hpp"
#include "trainer/shared_folder/session.hpp"
#include "trainer/sockets/seen_connections.hpp"
#include "trainer/stopping/stopping.hpp"
#include "trainer/whole/checkpointed_model.hpp"
#include "trainer/whole/evaluation.hpp"
#include "trainer/whole/exported_model.hpp"
#include "trainer/whole/gathering.hpp"

namespace fomoe::trainer {

namespace {

struct Validation {
  double loss = -1;  // negative: not validated here
  std::vector<RouterFigures> routers;
};

struct Losses {                                     // at this process
  std::map<costmodel::NodeId, Validation> of_node;  // of the models of the sites
  Validation of_whole;                              // of the whole model, if the models of the sites differ
};

/// One process's part of the run.
class Run {
 public:
  Run(const RunRequest& request, std::ostream& progress, bool terminal)
      : request_(request),
        scenario_(request.scenario),
        out_(progress),
        plan_(costmodel::make_plan(scenario_)),
        absent_(plan_),
        options_(training_options(request)),
        data_(request.paced && !trains(scenario_.model) ? RunData::unread(scenario_, plan_)
                                                        : RunData(scenario_, request.settings, plan_)),
        history_(speaks() ? request.checkpoints : ""),
        log_(path_of_rank(request.log, rank()), progress) {
    // Checked before any process waits for another one.
    check_checkpoints(request);
    if (!request.settings.initial_weights.empty()) initial_ = read_exported(request.settings.initial_weights);
    if (data_.by_site() && !request.launch)
      data_.deal({{"this process", data_.own_files()}}, {RunData::kNoSite});
    digest_ = determines_weights(request, plan_, options_, data_.batches ? data_.hash() : "by site",
                                 data_.validation_corpus);
    if (!initial_.tensors.empty()) digest_.emplace_back("trainer.initial_weights", hash_of(initial_));
    connect();
    options_.ranks = ranks_.get();
    executor_.emplace(scenario_, plan_, *transport_, *data_.batches, options_);
    if (!initial_.tensors.empty()) take_parts(initial_);
    if (!request.start_from.empty()) start_from(read_checkpointed(request.start_from));
    compare_weights("start from");
    if (!request.checkpoints.empty()) resume();
    if (first_round_ > 0 && agree_between_rounds(scenario_.strategy)) compare_weights("resume with");
    if (speaks() && !options_.kernel_by_kernel.empty())
      out_ << "the host launches each kernel, which takes longer: " << options_.kernel_by_kernel << '\n';
    if (speaks() && !request.paced && data_.path.empty()) out_ << data_.description() << '\n';
    if (speaks() && !absent_.none())
      out_ << "goes on without " << absent_.names(plan_, scenario_.platform) << '\n';
    upkeep_.emplace(*executor_);
    stream_.emplace(*executor_, rendezvous_ ? &*rendezvous_ : nullptr, plan_, first_round_, leads_site());
    progress_.emplace(progress, terminal, scenario_, plan_, first_round_,
                      [this] { return stream_->exposed_s(); });
  }

  std::optional<TrainingResult> run() {
    // It was killed after the last checkpoint, and a job manager must learn that it is complete, not failed.
    if (first_round_ == plan_.rounds) {
      if (speaks()) out_ << "the run is already complete\n";
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
      const Model& model = executor_->worker(step.node).model();
      if (!request_.routing_counts.empty())
        add_choices(routed_[step.node], *step.routing, model.shape(), model.options().experts);
      norms_.step(step);
      log_.step(step, site_name(step.node), model.options().experts);
      if (speaks() && step.node == executor_->hosted().front()) progress_->step(step);
    };
    executor_->on_outer_step = [this](const OuterRecord& step) {
      norms_.outer_step(step);
      log_.outer_step(step, site_name(step.node));
    };
    executor_->on_transfer = [this](const TransferRecord& transfer) {
      log_.transfer(transfer, site_name(transfer.node));
    };
    if (request_.paced) executor_->rehearse();
    if (rendezvous_) rendezvous_->start_together();
    request_.all_present();
    if (checkpoints_ && request_.stop_within_s > 0)
      stopping_.emplace(rendezvous_ ? &*rendezvous_ : nullptr, rank(), request_.stop_within_s);
    executor_->zero_clock();
    history_.begins(first_round_, absent_.list(plan_, scenario_.platform));
    reset_peak_memory(options_.device.is_cuda());
    const std::int64_t first_step = steps_done();
    Losses losses;
    for (std::int64_t round = first_round_; round < plan_.rounds; ++round) {
      const std::int64_t done = round + 1;
      const bool last = done == plan_.rounds;
      norms_.clear();
      if (last) executor_->want_last_norms();
      executor_->run_round(round);
      if (last && rendezvous_ && speaks()) connections_ = seen_connections();  // before others end
      stream_->round(done);
      progress_->round(done);
      upkeep_->round_ended();
      const std::int64_t every = request_.settings.validation_rounds;
      if (last || (every > 0 && done % every == 0)) losses = validate(round);
      const bool stops = stopping_ && !last && stopping_->stops_after(done);
      if (checkpoints_ && (last || stops || done % request_.settings.checkpoint_rounds == 0)) save(done);
      log_.flush();
      if (stops) stopping_->stop(done, plan_.rounds, *checkpoints_);
      if (!last) upkeep_->begins(done);  // what follows is not part of the measured time
    }
    executor_->finish();
    if (checkpoints_) checkpoints_->wait();
    if (ranks_ && !ranks_->agree_on(to_json(weight_hashes(*executor_))))
      throw std::runtime_error("the processes of " + site_name(executor_->hosted().front()) +
                               " have different weights at the end of the run");
    if (speaks()) progress_->end();
    std::optional<TrainingResult> result = report(losses, steps_done() - first_step);
    log_.flush();
    if (!log_.problem().empty() && !result) throw std::runtime_error("--log: " + log_.problem());
    if (result) result->log_problem = log_.problem();
    return result;
  }

  void save(std::int64_t done) {
    executor_->open_shards();
    if (leads_site()) checkpoints_->save(*executor_, done);
    history_.saved(upkeep_->until_now_s());
    executor_->close_shards();
    if (leads_site() && done < plan_.rounds && drops()) let_sites_join();
  }

  [[nodiscard]] bool drops() const { return request_.launch && request_.settings.on_lost_site == "drop"; }
  // For a site that has come back, all start anew from the checkpoint that has just been written.
  void let_sites_join() {
    if (request_.launch->rank != 0) return;
    const std::string asked = rendezvous_->asked_to_start_anew();
    if (asked.empty()) return;
    checkpoints_->wait();
    throw SiteLost(asked);
  }

  [[nodiscard]] int rank() const { return request_.launch ? request_.launch->rank : 0; }
  [[nodiscard]] bool speaks() const { return rank() == 0; }
  // Only this one of a site's processes saves and reports: the others have the same state.
  [[nodiscard]] bool leads_site() const { return !ranks_ || ranks_->place().rank == 0; }
  [[nodiscard]] std::string site_name(costmodel::NodeId node) const {
    return node_name(plan_, scenario_.platform, node);
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
    const std::vector<int> counts = processes_of_sites(scenario_, request_.paced);
    const int processes = std::accumulate(counts.begin(), counts.end(), 0);
    check_world(request_.launch->world, processes, scenario_.sites());
    rendezvous_.emplace(*request_.launch, process_names(scenario_, counts), request_.settings.timeout_s,
                        lost_sites(request_.settings, plan_, processes, request_.resume));
    rendezvous_->agree(shared_by_processes(request_, plan_, digest_));
    if (drops()) {  // one process trains each site, so ranks are sites
      absent_ = AbsentSites(plan_, rendezvous_->members());
      absent_.leave_out_of(plan_);
    }
    if (data_.by_site()) {
      data_.deal_among(*rendezvous_, process_names(scenario_, counts), counts, request_.checkpoints);
      set_data(digest_, data_.hash());
    }
    SitePlace place = site_place(rank(), counts);
    place.hosts_store = place.site == 0 && scenario_.platform.store && scenario_.platform.store->aggregates;
    SiteLinks links = rendezvous_->links(plan_.nodes, options_.device, request_.settings.transport,
                                         site_names(scenario_), place, scenario_.network.streams);
    ranks_ = std::move(links.ranks);
    transport_ = std::move(links.transport);
    if (has_store(plan_))
      transport_->use_store(join_store(request_.store, digest_, *rendezvous_, speaks(),
                                       node_names(plan_, scenario_.platform), request_.settings.timeout_s));
  }

  void take_parts(const WholeModel& whole) {
    check_start(whole, request_, data_, options_.constants, out_);
    for (const costmodel::NodeId node : executor_->hosted()) take_part(whole, executor_->worker(node));
  }

  void start_from(const WholeModel& whole) {
    first_round_ = round_after(plan_, whole, scenario_.workload.tokens);
    executor_->resume_at(first_round_, whole.steps);
    take_parts(whole);
    executor_->moment_ages().set(whole.experts);
    if (speaks()) out_ << started_from(whole, *executor_, request_.start_from) << '\n';
  }

  // Sites have the same weights here unless something is wrong with a machine, a file or a program.
  void compare_weights(const std::string& when) {
    if (!rendezvous_ || request_.paced) return;
    std::vector<Digest> all;
    for (const std::string& text :
         rendezvous_->gather("weights that sites " + when, to_json(weight_hashes(*executor_))))
      all.push_back(text.empty() ? Digest() : digest_from_json(text));
    const std::string what =
        disagreement(all, process_names(scenario_, processes_of_sites(scenario_, request_.paced)));
    if (!what.empty()) throw std::runtime_error("the sites " + when + " different weights: " + what);
  }

  // Resumes from the last round for which every process has all its files, complete and of this run.
  void resume() {
    checkpoints_.emplace(request_.checkpoints, digest_, absent_.nodes());
    data_.keep_list(request_.checkpoints);
    if (!request_.resume && !drops()) return;  // a site that comes back may have lost its disk
    std::vector<std::string> reasons;
    const std::string own = resumable(*checkpoints_, executor_->hosted(), plan_, reasons);
    const CommonState state = common_state(
        rendezvous_ ? rendezvous_->gather("resume", own) : std::vector<std::string>{own}, drops());
    for (const std::string& reason : reasons) out_ << reason << "; an older checkpoint is used\n";
    if (state.rounds == 0) {
      if (speaks() && request_.resume)
        out_ << "no checkpoint in " << request_.checkpoints << "; starting from the beginning\n";
      return;
    }
    first_round_ = state.rounds;
    log_.continues_after(first_round_);
    if (!state.lacking[static_cast<std::size_t>(rank())]) checkpoints_->load(*executor_, first_round_);
    for (const std::string& line :
         bring_state(*executor_, *transport_, rendezvous_, plan_, *checkpoints_, state, absent_.by_node()))
      out_ << line << '\n';
    if (speaks()) out_ << "resumed after round " << first_round_ << " of " << plan_.rounds << '\n';
  }

  Losses validate(std::int64_t round) {
    Losses losses;
    if (data_.batches->validation_sequences() == 0 || request_.paced) return losses;
    for (const costmodel::NodeId node : executor_->hosted()) {
      if (plan_.nodes[static_cast<std::size_t>(node)].kind != costmodel::NodeKind::worker) continue;
      losses.of_node[node] = validated(executor_->worker(node).model(), node, site_name(node), round);
    }
    const bool differ = !agree_between_rounds(scenario_.strategy);
    if (!plan_.placement && !differ) return losses;  // every site has the whole model
    const costmodel::Placement placement = owners_after(plan_, scenario_.model, round + 1);
    if (!experts_without_owner(placement, absent_.by_node()).empty()) return losses;
    if (const auto whole = gather_whole(*executor_, *transport_, placement, absent_.by_node(), differ)) {
      const Model model = model_of(*whole, options_.device, options_.dtype);
      losses.of_whole = validated(model, executor_->hosted().front(), "all", round);
    }
    return losses;
  }

  Validation validated(const Model& model, costmodel::NodeId node, const std::string& name,
                       std::int64_t round) {
    const auto sequences = static_cast<std::int64_t>(plan_.nodes[static_cast<std::size_t>(node)].sequences);
    const std::int64_t pass = executor_->micro_batch_of(node);
    const std::int64_t most = pass > 0 ? pass : std::max<std::int64_t>(1, sequences);
    Routing routing;
    const double loss = validation_loss(model, *data_.batches, most, &routing);
    if (!std::isfinite(std::exp(loss)))
      executor_->diverged(node, "the perplexity of the validation", /*of_step=*/false);
    log_.validation(name, round, loss, data_.batches->validation_sequences());
    return {loss, router_figures(routing, model.options().experts)};
  }

  std::optional<TrainingResult> report(const Losses& losses, std::int64_t steps) {
    Observation own;
    for (const costmodel::NodeId node : leads_site() ? executor_->hosted() : std::vector<int>()) {
      if (plan_.nodes[static_cast<std::size_t>(node)].kind == costmodel::NodeKind::store) continue;
      const auto loss = losses.of_node.find(node);
      const NodeNorms norms = norms_.of(node);
      if (const char* name = not_finite(norms)) executor_->diverged(node, name);
      const Validation validation = loss == losses.of_node.end() ? Validation() : loss->second;
      own.nodes.push_back(
          {node, transport_->traffic(node), validation.loss, routed_[node], validation.routers, norms});
    }
    if (leads_site()) {
      own.whole_validation_loss = losses.of_whole.loss;
      own.sent_by_store = sent_by_store(plan_, *transport_);
    }
    own.upkeep_s = upkeep_->seconds();
    own.intervals = stream_->rest();
    own.peak_memory_bytes = peak_memory_bytes(options_.device.is_cuda());
    std::vector<Observation> all = {own};
    if (rendezvous_) {
      all.clear();
      for (const std::string& text : rendezvous_->collect("report", to_text(own))) {
        if (!text.empty()) all.push_back(observation_from(text));
      }
    }
    if (!speaks()) return std::nullopt;
    IntervalSummary& intervals = stream_->received();
    for (const Observation& seen : all) intervals.add(seen.intervals);
    if (!request_.routing_counts.empty()) {
      write_file(request_.routing_counts, routing_csv(scenario_, plan_, all));
      if (first_round_ > 0)
        out_ << request_.routing_counts << ": only the rounds after round " << first_round_ << " count\n";
    }
    ReportContext context = report_context(request_, plan_, absent_, data_, options_);
    context.first_round = first_round_;
    context.steps = steps;
    TrainingResult result;
    result.report = measured_report(scenario_, plan_, all, intervals, context);
    result.first_round = first_round_;
    if (!context.in_turn)  // otherwise sites do not work at the same time
      result.round_timeline = scenario::to_text(scenario::to_json(
          costmodel::round_timeline(plan_, intervals.around_middle()), plan_, scenario_.platform));
    result.validation = validation_json(scenario_, plan_, all, context);
    result.all = history_.ended();
    result.connections = connections_;
    return result;
  }

  const RunRequest& request_;
  const costmodel::Scenario& scenario_;
  std::ostream& out_;
  costmodel::Plan plan_;
  AbsentSites absent_;
  TrainingOptions options_;
  WholeModel initial_;  // trainer.initial_weights; without tensors: not given
  Digest digest_;       // what determines the weights
  RunData data_;
  RunHistory history_;
  RunLog log_;
  std::optional<Rendezvous> rendezvous_;
  std::unique_ptr<SiteRanks> ranks_;  // of a site with several processes
  std::unique_ptr<Transport> transport_;
  std::optional<Executor> executor_;
  std::optional<Checkpoints> checkpoints_;
  std::optional<IntervalStream> stream_;
  std::optional<UpkeepClock> upkeep_;
  LastNorms norms_;  // of the last round
  std::optional<TrainingProgress> progress_;
  std::optional<Stopping> stopping_;  // while the rounds of a run with checkpoints run
  std::map<costmodel::NodeId, std::vector<std::vector<std::int64_t>>> routed_;
  scenario::SeenConnections connections_;
  std::int64_t first_round_ = 0;
};

}  // namespace

std::optional<TrainingResult> train(const RunRequest& request, std::ostream& progress, bool terminal) {
  at::set_num_threads(request.threads > 0 ? request.threads : default_threads());
  at::globalContext().setFlushDenormal(true);  // as measure_profile() does
  use_deterministic_algorithms(request.settings.deterministic);
  const CpuWatch watch;
  std::optional<TrainingResult> result = Run(request, progress, terminal).run();
  if (result) {
    result->threads = at::get_num_threads();
    result->waited_share = watch.use(result->threads).waited_share;
  }
  return result;
}

}  // namespace fomoe::trainer
