// Executes a plan with real models: walks over the operations of each round in order and performs them. The
// plan determines what is sent, by which node and when. The meaning of a payload follows from its content
// (see worker.hpp). The executor does not know any method by name.
//
// A process executes the operations of the nodes that its transport hosts. It walks over the operations of a
// round in the plan's order, in which each operation follows those that it waits for.
//
// Before each operation, the process starts every transfer of the round whose prerequisites are done,
// including transfers further on in the order. So transfers that do not depend on each other are under way at
// the same time, each on its own thread, and share the links as in the simulator. A transfer that follows
// other transfers is started when the computations before it are done. Its thread begins when the earlier
// transfers have ended, while the node continues to compute.
//
// An operation waits for the transfers that the plan puts before it. A round waits for all its transfers that
// are not detached. Received values are written into the models only at these waits. The result therefore
// does not depend on the speed of the network, and it is the same as if the transfers ran one after another.
//
// The receives of a round's first messages are all posted before its first operation, since Gloo sends data
// only after it has heard that the receiver is ready, which costs one latency.
//
// The execution differs from the plan's graph in two ways:
//   - A transfer may send what another transfer brings into the models. Then the first transfer does not
//     start at the moment the other one ends. It starts when the process reaches an operation that waits for
//     the other one.
//   - Migration is a barrier of its site: the experts change at its end, and no other operation of the site
//     runs beside it. (No plan that is trained has a transfer that could.)
//
// A plan may divide a step into parts: forward, then several backward operations with transfers between them.
// The last micro-batch then still has one forward and one backward pass of the model. The backward pass
// pauses at the layers where gradients are sent (gradient_pass.hpp).
#pragma once
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "costmodel/inputs/scenario.hpp"
#include "costmodel/plan/plan.hpp"
#include "costmodel/timeline/timeline.hpp"
#include "trainer/comm/collectives.hpp"
#include "trainer/comm/site_ranks.hpp"
#include "trainer/data/batches.hpp"
#include "trainer/device/stopwatch.hpp"
#include "trainer/execution/background.hpp"
#include "trainer/execution/worker.hpp"
#include "trainer/io/safetensors.hpp"
#include "trainer/measurement/pacing.hpp"
#include "trainer/optimizer/moment_ages.hpp"
#include "trainer/optimizer/schedule.hpp"
#include "trainer/step/gradient_pass.hpp"
#include "trainer/step/recorded_step.hpp"

namespace fomoe::trainer {

struct TrainingOptions {
  AdamWOptions inner;
  OuterOptions outer;
  bool restart_moments = false;  // of the inner optimiser, before each round but the first
  LearningRate rate;             // peak and steps follow from `inner` and the plan
  // limit of the norm of a site's gradients, before each optimiser step; 0: no clipping
  double clip_norm = 0;
  double balance_weight = 0;  // factor of the load-balancing loss
  // α of Worker::outer_step: a site has trained on while its differences travelled, and keeps this share of
  // that training
  double kept_share = 0.5;
  double residual_decay = 1;  // see WorkerOptions
  // sequences per forward and backward pass; 0: the whole local batch. Sites that differ have their own
  // numbers (Executor::micro_batch_of).
  std::int64_t micro_batch_sequences = 0;
  at::Device device = at::kCPU;
  at::ScalarType dtype = at::kFloat;      // see ModelOptions
  Launches launches = Launches::by_host;  // by_graph works on GPUs only
  std::string kernel_by_kernel;           // why a GPU cannot record steps; empty: it can, or shall not
  bool exact_wire = false;                // see WireCodec
  /// Compute operations sleep for the scenario's time instead of computing, and transfers are real. Tensors
  /// keep their initial values, and gradients are 0.
  bool paced = false;
  bool norms = false;           // whether the norms of StepRecord and OuterRecord are wanted
  bool skip_nonfinite = false;  // leave out steps whose gradients are not finite, instead of stopping
  SiteRanks* ranks = nullptr;   // the processes of this site, if it has several
  ModelConstants constants = {};
};

/// A loss, or a value that a site was about to send or to save, is not finite.
inline constexpr const char* kDivergedAt = "the training diverged at ";  // its message begins so
class Diverged : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What a plan requires of each node.
struct PlanNeeds {
  std::vector<bool> outer_steps;       // by node: takes outer steps
  std::vector<bool> pseudo_gradients;  // by node: sends pseudo-gradients
  bool moments = false;                // moments of the inner optimiser travel
  bool residuals = false;              // of pseudo-gradients; see feeds_errors_back()
  bool detached = false;               // some transfers continue into the next round
};
/// Determines the requirements from one round of each kind that this run or a longer one has. Throws
/// InputError, naming the scenario's key, if the trainer does not support something in the plan. A `paced`
/// run may have any model.
PlanNeeds needs_of(const costmodel::Scenario& scenario, const costmodel::Plan& plan, bool paced = false);

/// Whether the trainer has models of this shape: those of the FoMoE paper's architecture.
bool trains(const costmodel::ModelShape& shape);

/// Whether the transfer moves experts to other owners.
bool migrates(const costmodel::Transfer& transfer);

/// The layer down to which a backward operation goes: the lowest layer whose gradients are sent after it.
/// Empty if no gradients are sent after it.
std::optional<std::int64_t> backward_until(const costmodel::Plan& plan, const costmodel::RoundPlan& round,
                                           costmodel::OpId backward);

/// Begins the names of tensors of Executor::in_flight().
inline constexpr const char* kInFlight = "in_flight.";

/// One optimiser step of one node.
struct StepRecord {
  costmodel::NodeId node = 0;
  std::int64_t round = 0, step = 0;
  /// Mean cross-entropy of the node's sequences, fp64, on the device; undefined if compute was paced. Reading
  /// it waits for the device.
  at::Tensor loss;
  at::Tensor gradient_norm;  // before clipping, on the device; undefined if nothing needs it
  at::Tensor update_norm;    // of the step's change of the parameters, on the device; undefined if not wanted
  bool skipped = false;      // the gradients were not finite, and the optimiser left the step out
  double learning_rate = 0;
  std::int64_t tokens = 0;
  Stopwatch time;                    // of the step's computation; reading it waits for the device
  const Routing* routing = nullptr;  // routing statistics of the step
};

/// One outer step of one node.
struct OuterRecord {
  costmodel::NodeId node = 0;
  std::int64_t round = 0;
  OuterNorms norms;
};

/// A node's part in one transfer, from waiting for the first byte to the last byte sent and received.
struct TransferRecord {
  costmodel::NodeId node = 0;
  std::int64_t round = 0;
  std::string operation;
  double start_s = 0, end_s = 0;  // seconds since zero_clock
  double exposed_s = 0;           // seconds of the transfer in which the node did not compute
};

class Executor {
 public:
  /// Throws InputError, before anything is trained, if the trainer cannot execute something in the plan.
  /// Plan, transport and batches must outlive it.
  Executor(const costmodel::Scenario& scenario, const costmodel::Plan& plan, Transport& transport,
           Batches& batches, const TrainingOptions& options);

  ~Executor() = default;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// Runs the transfers of the first round as if all other nodes sent zeros at once, and writes the results
  /// into the models. Call it only in paced runs, in which nothing is trained. Training steps would already
  /// have used much of the code and memory that transfers need; without rehearse(), the first exchanges of a
  /// paced run would be the first to use them.
  void rehearse();
  /// From now on the norms of outer steps are measured, and those of the last step of each node in a round;
  /// without TrainingOptions::norms no others are, since on a CPU they make a step 40 % longer. On a
  /// GPU that launches recorded steps, the norms of steps stay as the recording has them.
  void want_last_norms() { last_norms_ = true; }
  /// Throws Diverged before a site sends a value that is not finite, and after a loss that is not finite.
  void run_round(std::int64_t index);
  /// Throws Diverged, which says that this value of the node's site is not finite.
  /// `of_step`: a step may have caused it, which trainer.on_divergence could leave out.
  [[noreturn]] void diverged(costmodel::NodeId node, const std::string& what, bool of_step = true) const;
  /// Waits for transfers that continue after the last round. Their averages arrive too late and change no
  /// weights.
  void finish();
  std::function<void(const StepRecord&)> on_step;         // called after each optimiser step, if set
  std::function<void(const OuterRecord&)> on_outer_step;  // called after each outer step, if set
  // called when an operation has waited for the transfer, if set
  std::function<void(const TransferRecord&)> on_transfer;

  /// The worker of a hosted node.
  [[nodiscard]] Worker& worker(costmodel::NodeId node) { return *workers_.at(node); }
  [[nodiscard]] std::vector<costmodel::NodeId> hosted() const;
  /// Sequences of one pass at the node's site; 0: its whole batch.
  [[nodiscard]] std::int64_t micro_batch_of(costmodel::NodeId node) const;
  /// Number of nodes of the plan, at all processes together.
  [[nodiscard]] std::size_t nodes() const { return plan_.nodes.size(); }
  [[nodiscard]] MomentAges& moment_ages() { return ages_; }
  /// What the hosted nodes did and when, in seconds since `zero_clock`; run_round appends to it.
  [[nodiscard]] const std::vector<costmodel::Interval>& intervals() const { return intervals_; }
  /// Takes away the intervals of the rounds before `round`.
  [[nodiscard]] std::vector<costmodel::Interval> take_intervals(std::int64_t round);
  void zero_clock();
  [[nodiscard]] double now_s() const;
  /// The hosted nodes have done since `start_s` what is no operation of the plan, before `round`.
  void note_upkeep(std::int64_t round, double start_s);

  /// Puts the sharded state of the optimisers together in the workers of all processes of the site, until
  /// close_shards(). Every process of the site must call it. Without shards, neither does anything.
  void open_shards();
  void close_shards();

  /// Continues at the start of round `index`, after `steps` optimiser steps of each site. The workers then
  /// hold that round's experts, and the caller must fill in their state.
  void resume_at(std::int64_t index, std::int64_t steps);
  /// What the node has received by transfers that continue into the next round, for checkpoints. Waits until
  /// it has arrived. Call it only between rounds, and not after finish().
  [[nodiscard]] NamedTensors in_flight(costmodel::NodeId node);
  /// Takes what in_flight() gave after round `index`. `read` returns the tensor of a hosted node with this
  /// name and number of elements.
  using ReadInFlight =
      std::function<at::Tensor(costmodel::NodeId node, const std::string& name, std::int64_t elements)>;
  void restore_in_flight(std::int64_t index, const ReadInFlight& read);
  /// Whether the node trains. A server, also one beside a store, holds weights but makes no optimiser steps.
  [[nodiscard]] bool is_worker(costmodel::NodeId node) const {
    return plan_.nodes[static_cast<std::size_t>(node)].kind == costmodel::NodeKind::worker;
  }
  /// Optimiser steps that a hosted node has made.
  [[nodiscard]] std::int64_t steps(costmodel::NodeId node) const { return step_.at(node); }

 private:
  /// A transfer that is under way, with the plan of its round.
  struct InFlight {
    std::shared_ptr<const costmodel::RoundPlan> plan;
    const costmodel::Transfer* work = nullptr;
    std::unique_ptr<TransferRun> run;
    double start_s = 0, end_s = 0;
    std::shared_future<void> done;
  };
  using OpOfRound = std::pair<std::int64_t, costmodel::OpId>;
  /// A transfer of the round before this process began, with what the hosted nodes had received by it.
  struct Arrived {
    std::shared_ptr<const costmodel::RoundPlan> plan;
    const costmodel::Transfer* work = nullptr;
    std::vector<std::pair<PayloadAt, at::Tensor>> means = {};
  };
  void compute(const costmodel::RoundPlan& plan, std::int64_t round);
  void expect_transfers(const costmodel::RoundPlan& plan, std::int64_t round);
  void start_ready(const std::shared_ptr<const costmodel::RoundPlan>& plan, std::int64_t round,
                   costmodel::OpId from);
  [[nodiscard]] bool may_start(const costmodel::RoundPlan& plan, const OpOfRound& which);
  [[nodiscard]] bool reads_result_of(const costmodel::Transfer& sends, const OpOfRound& under_way);
  void start(const std::shared_ptr<const costmodel::RoundPlan>& plan, const OpOfRound& which);
  [[nodiscard]] TransferOptions transfer_options(const costmodel::Transfer& work, std::int64_t round);
  void settle(OpOfRound which);  // by value: callers pass keys of in_flight_, which it erases
  void settle_arrived(const OpOfRound& which);
  void settle_ages(const costmodel::Transfer& work);
  void migrate(const costmodel::Transfer& work, std::int64_t round, const std::string& name);
  void make_worker(costmodel::NodeId node, const PlanNeeds& needs);
  [[nodiscard]] bool is_store(costmodel::NodeId node) const {
    return plan_.nodes[static_cast<std::size_t>(node)].kind == costmodel::NodeKind::store;
  }
  void note(costmodel::NodeId node, const OpOfRound& which, costmodel::Activity activity, double start_s,
            double end_s);
  void note_transfer(costmodel::NodeId node, const OpOfRound& which, const std::string& name, double start_s,
                     double end_s);
  void gradients(costmodel::NodeId node, const costmodel::RoundPlan& plan, std::int64_t round);
  void add_up_gradients(costmodel::NodeId node);
  void share_updates(costmodel::NodeId node, StepRecord& record);
  void pace(const costmodel::Compute& work, costmodel::NodeId node, std::int64_t round);
  void optimizer_step(costmodel::NodeId node);
  [[nodiscard]] bool steps_later(const costmodel::RoundPlan& plan, costmodel::NodeId node) const;
  void check_losses();
  void check_losses(costmodel::NodeId node);
  [[nodiscard]] at::Tensor source(const costmodel::Transfer& work, const PayloadAt& at);
  void sink(const costmodel::Transfer& work, const PayloadAt& at, const at::Tensor& mean);

  const costmodel::Scenario scenario_;
  const costmodel::Plan& plan_;
  Transport& transport_;
  Batches& batches_;
  TrainingOptions options_;
  bool last_norms_ = false;       // see want_last_norms()
  std::optional<Pacing> pacing_;  // in paced runs
  std::map<costmodel::NodeId, std::unique_ptr<Worker>> workers_;
  std::map<costmodel::NodeId, RecordedStep> steps_;  // by node: the step of the worker's model
  // by node: steps that have begun and await the optimiser
  std::map<costmodel::NodeId, StepRecord> open_step_;
  std::map<costmodel::NodeId, GradientPass> open_pass_;
  std::map<costmodel::NodeId, Routing> routing_;
  std::map<costmodel::NodeId, std::int64_t> step_;
  // by node: the steps since the last check of losses, with their losses on the device
  std::map<costmodel::NodeId, std::vector<std::pair<std::int64_t, at::Tensor>>> unchecked_;
  MomentAges ages_;
  std::vector<costmodel::Interval> intervals_;
  costmodel::OpId op_ = 0;  // the operation that is being executed
  double clock_zero_ = 0;
  costmodel::Pieces pieces_;
  int transfers_ = 0;  // number of transfers so far; the same at every process
  std::int64_t round_ = 0;
  std::vector<bool> started_, done_;  // by operation of the round; done: its results are in the models
  // by operation of the round, until the transfer starts
  std::vector<std::unique_ptr<TransferRun>> expected_;
  std::map<OpOfRound, std::unique_ptr<InFlight>> in_flight_;
  std::map<OpOfRound, Arrived> arrived_;  // from a checkpoint
  /// By transfer of this round and the previous one: the number of optimiser steps that each node had made
  /// when the transfer read what the node sends.
  std::map<OpOfRound, std::map<costmodel::NodeId, std::int64_t>> started_at_;
  PartialMeans partial_;
  Background background_;  // last member: its tasks use the others
};

}  // namespace fomoe::trainer
