// Runs a plan: walks the operations of each round in order and does them with real models. What is sent, by
// whom and when is the plan's; what a received content means follows from the content (see worker.hpp). No
// method's name occurs here.
//
// A process executes the operations of the nodes that its transport hosts. It walks over a round's operations
// in the plan's order, in which each follows what it waits for. Before each it starts every transfer of the
// round, further on in the order too, whose prerequisites are done: transfers that do not depend on each
// other are under way at the same time, each on a thread of its own, and share the links as in the simulator.
// A transfer that follows others is started when its computations are done, and its thread begins when theirs
// have ended, while the node computes on. An operation waits for the transfers that it comes after, and a
// round for those that are not detached. What has arrived is written into the models only there, so that the
// result does not depend on how fast the network was, and is that of transfers one after another.
//
// All receives of a round's first messages are posted before its first operation, since Gloo sends data only
// when it has heard that the receiver is ready, one latency later than it could.
//
// Two departures from the plan's graph. A transfer that sends what another one brings into the models starts
// when the process has come to an operation that waits for the first, not the moment it ends. Migration is a
// barrier of its site: the experts change at its end, and nothing else of the site runs beside it. (No plan
// that is trained has a transfer that could.)
//
// A step in parts (forward, backward … backward, with transfers between) is one forward and backward pass of
// the model, of the last micro-batch, which stops where gradients leave (gradient_pass.hpp).
#pragma once
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "costmodel/compute/operation_seconds.hpp"
#include "costmodel/inputs/scenario.hpp"
#include "costmodel/plan/plan.hpp"
#include "costmodel/timeline/timeline.hpp"
#include "trainer/comm/collectives.hpp"
#include "trainer/data/batches.hpp"
#include "trainer/optimizer/moment_ages.hpp"
#include "trainer/run/background.hpp"
#include "trainer/run/worker.hpp"
#include "trainer/step/gradient_pass.hpp"
#include "trainer/step/recorded_step.hpp"

namespace fomoe::trainer {

struct TrainingOptions {
  AdamWOptions inner;
  OuterOptions outer;
  std::int64_t warmup_steps = 0;  // η·min(1, (step + 1) ÷ warmup_steps), then constant
  double clip_norm = 0;           // of a site's gradients, before each optimiser step; 0: no clipping
  double balance_weight = 0;      // of the load-balancing loss
  double kept_share = 0.5;        // of what a site trained while its differences travelled (see Worker)
  std::int64_t micro_batch_sequences = 0;  // of one forward and backward; 0: the whole local batch
  at::Device device = at::kCPU;
  at::ScalarType dtype = at::kFloat;      // see ModelOptions
  Launches launches = Launches::by_host;  // by_graph: on GPUs only
  bool exact_wire = false;                // see WireCodec
  /// Compute operations sleep for as long as the scenario says instead of computing; transfers are as real as
  /// ever. Tensors keep the values that they start with, gradients are 0.
  bool paced = false;
};

/// What a plan asks of each node, and whether the trainer can do it all.
struct PlanNeeds {
  std::vector<bool> outer_steps;       // by node
  std::vector<bool> pseudo_gradients;  // sends them
  bool residuals = false;              // pseudo-gradients lose something on the wire
  bool detached = false;               // some transfers run on into the next round
};
/// Looks at one round of each kind. Throws InputError, naming the scenario's key, for what is not trained.
PlanNeeds needs_of(const costmodel::Scenario& scenario, const costmodel::Plan& plan);

/// Whether experts change their owners with it.
bool migrates(const costmodel::Transfer& transfer);

/// How far down a backward operation goes: to the first layer of the gradients that are sent after it. None
/// where none are.
std::optional<std::int64_t> backward_until(const costmodel::Plan& plan, const costmodel::RoundPlan& round,
                                           costmodel::OpId backward);

/// One optimiser step of one node.
struct StepRecord {
  costmodel::NodeId node = 0;
  std::int64_t round = 0, step = 0;
  double loss = 0;  // mean cross-entropy of the node's sequences; not a number where compute was paced
  double learning_rate = 0;
  std::int64_t tokens = 0;
  double seconds = 0;
  const Routing* routing = nullptr;  // of the step
};

/// A node's part in one transfer, from wanting the first byte to the last one sent and received.
struct TransferRecord {
  costmodel::NodeId node = 0;
  std::int64_t round = 0;
  std::string operation;
  double start_s = 0, end_s = 0;  // since zero_clock
  double exposed_s = 0;           // of it, while the node did not compute
};

class Executor {
 public:
  /// Throws InputError where the trainer cannot execute something in the plan, before anything is trained.
  /// Plan, transport and batches must outlive it.
  Executor(const costmodel::Scenario& scenario, const costmodel::Plan& plan, Transport& transport,
           Batches& batches, const TrainingOptions& options);

  ~Executor() = default;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// Goes through the transfers of the first round as if all others sent zeros at once, and takes them over:
  /// only where nothing is trained. The first exchanges would otherwise be the first to touch code and memory
  /// that training steps have long used.
  void rehearse();
  void run_round(std::int64_t index);
  /// Waits for transfers that run on. Their averages come after the end of the run and change no weights.
  void finish();
  std::function<void(const StepRecord&)> on_step;          // called after each, where set
  std::function<void(const TransferRecord&)> on_transfer;  // called when an operation has waited for it

  /// Of a hosted node.
  [[nodiscard]] Worker& worker(costmodel::NodeId node) { return *workers_.at(node); }
  [[nodiscard]] std::vector<costmodel::NodeId> hosted() const;
  [[nodiscard]] MomentAges& moment_ages() { return ages_; }
  /// When hosted nodes did what, in seconds since `zero_clock`; appended to by run_round.
  [[nodiscard]] const std::vector<costmodel::Interval>& intervals() const { return intervals_; }
  void zero_clock();
  [[nodiscard]] double now_s() const;

  /// Goes on at the start of round `index`, after `steps` optimiser steps: the workers then hold that round's
  /// experts, and the caller fills in their state.
  void resume_at(std::int64_t index, std::int64_t steps);
  /// Optimiser steps that a hosted node has taken.
  [[nodiscard]] std::int64_t steps(costmodel::NodeId node) const { return step_.at(node); }

 private:
  /// A transfer under way, with the plan that it is of.
  struct InFlight {
    std::shared_ptr<const costmodel::RoundPlan> plan;
    const costmodel::Transfer* work = nullptr;
    std::unique_ptr<TransferRun> run;
    double start_s = 0, end_s = 0;
    std::shared_future<void> done;
  };
  using OpOfRound = std::pair<std::int64_t, costmodel::OpId>;
  void compute(const costmodel::RoundPlan& plan, std::int64_t round);
  void expect_transfers(const costmodel::RoundPlan& plan, std::int64_t round);
  void start_ready(const std::shared_ptr<const costmodel::RoundPlan>& plan, std::int64_t round,
                   costmodel::OpId from);
  [[nodiscard]] bool may_start(const costmodel::RoundPlan& plan, const OpOfRound& which);
  [[nodiscard]] bool brings_what(const costmodel::Transfer& sends, const OpOfRound& under_way);
  void start(const std::shared_ptr<const costmodel::RoundPlan>& plan, const OpOfRound& which);
  [[nodiscard]] TransferOptions transfer_options(const costmodel::Transfer& work, std::int64_t round);
  void settle(OpOfRound which);  // by value: callers pass keys of in_flight_, which it erases
  void settle_ages(const costmodel::Transfer& work);
  void migrate(const costmodel::Transfer& work, std::int64_t round, const std::string& name);
  void make_worker(costmodel::NodeId node, const PlanNeeds& needs);
  void note(costmodel::NodeId node, const OpOfRound& which, costmodel::Activity activity, double start_s,
            double end_s);
  void note_transfer(costmodel::NodeId node, const OpOfRound& which, const std::string& name, double start_s,
                     double end_s);
  void gradients(costmodel::NodeId node, const costmodel::RoundPlan& plan, std::int64_t round);
  void pace(const costmodel::Compute& work, costmodel::NodeId node, std::int64_t round);
  void optimizer_step(costmodel::NodeId node);
  [[nodiscard]] at::Tensor source(const costmodel::Transfer& work, const PayloadAt& at);
  void sink(const PayloadAt& at, const at::Tensor& mean);

  const costmodel::Scenario scenario_;
  const costmodel::Plan& plan_;
  Transport& transport_;
  Batches& batches_;
  TrainingOptions options_;
  std::optional<costmodel::OperationSeconds> pace_;  // of paced runs
  std::map<costmodel::NodeId, std::unique_ptr<Worker>> workers_;
  std::map<costmodel::NodeId, RecordedStep> steps_;    // of the worker's model
  std::map<costmodel::NodeId, StepRecord> open_step_;  // has begun, the optimiser has not stepped
  std::map<costmodel::NodeId, GradientPass> open_pass_;
  std::map<costmodel::NodeId, Routing> routing_;
  std::map<costmodel::NodeId, std::int64_t> step_;
  MomentAges ages_;
  std::vector<costmodel::Interval> intervals_;
  costmodel::OpId op_ = 0;  // that is being executed
  double clock_zero_ = 0;
  costmodel::Pieces pieces_;
  int transfers_ = 0;  // so far; the same at every process
  std::int64_t round_ = 0;
  std::vector<bool> started_, done_;  // by operation of the round; done: its results are in the models
  std::vector<std::unique_ptr<TransferRun>> expected_;  // by operation of the round, until it starts
  std::map<OpOfRound, std::unique_ptr<InFlight>> in_flight_;
  /// Steps that the nodes had taken when what the transfer sends was read; of this round and the one before.
  std::map<OpOfRound, std::map<costmodel::NodeId, std::int64_t>> started_at_;
  PartialMeans partial_;
  Background background_;  // last: what it runs uses the others
};

}  // namespace fomoe::trainer
