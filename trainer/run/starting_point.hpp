// Where a run starts: from new weights, from its own checkpoints, or from the state of another run.
#pragma once
#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "costmodel/plan/method.hpp"
#include "costmodel/plan/plan.hpp"
#include "trainer/execution/checkpoints.hpp"
#include "trainer/run/run_data.hpp"
#include "trainer/run/training_run.hpp"
#include "trainer/whole/whole_model.hpp"

namespace fomoe::trainer {

/// Optimiser steps of a run after that many rounds.
std::int64_t steps_after(const costmodel::Plan& plan, std::int64_t rounds);

/// The rounds from which a process can resume, as text for the other processes; `reasons` gets a line for
/// each checkpoint that it cannot use. If a checkpoint belongs to a run with other weights, the text says so,
/// and common_state() throws it at all processes.
std::string resumable(const Checkpoints& checkpoints, const std::vector<costmodel::NodeId>& hosted,
                      const costmodel::Plan& plan, std::vector<std::string>& reasons);
/// The round after which a run goes on, and who has to get its state from others.
struct CommonState {
  std::int64_t rounds = 0;    // 0: the run starts from the beginning
  std::vector<bool> lacking;  // by process: it has no state of that round
};

/// The last round for which all processes have the state. `texts` are what resumable() returned at each
/// process; an empty text is a process that takes no part.
///
/// Processes whose sites the run had gone on without need not have the state, and if `drops`, processes
/// without any checkpoint need not either. They are lacking. Process 0 takes part in all rounds, so its files
/// say who was absent.
///
/// Throws FileError if a process has checkpoints but can use none: to start again from the beginning would
/// waste what was trained.
CommonState common_state(const std::vector<std::string>& texts, bool drops = false);

/// The round with which a run of `tokens` tokens goes on from the whole model's state. Throws UsageError if
/// none of its rounds begins after as many steps.
std::int64_t round_after(const costmodel::Plan& plan, const WholeModel& whole, std::int64_t tokens);

/// Says after how many steps a run starts from the state in `path`, and whether the outer optimiser of the
/// executor's sites, or of its server, is another one than that of the state.
std::string started_from(const WholeModel& whole, Executor& executor, const std::string& path);

/// Throws InputError, naming the key, if the scenario's model is not that of the weights.
void check_same_model(const costmodel::ModelShape& weights, const costmodel::ModelShape& scenario);
/// The same for the numbers in [trainer] that the model's function depends on.
void check_same_constants(const ModelConstants& weights, const ModelConstants& scenario);

/// Throws UsageError if the model was trained on the validation sequences of `data`: `sequences` from its
/// end, or another file. Says so on `out` if it is not known what the model was trained on. Only the model's
/// last training is known, and not one that this training began with.
void check_unseen(const WholeModel& whole, const RunData& data, std::int64_t sequences, std::ostream& out);

/// What a run may begin with: the scenario's model and constants, not trained on the run's validation
/// sequences.
void check_start(const WholeModel& whole, const RunRequest& request, const RunData& data,
                 const ModelConstants& constants, std::ostream& out);

/// Whether sites that hold a parameter have the same value of it after each round. Where fragments take
/// turns, they have trained some of them since these were averaged.
inline bool agree_between_rounds(const costmodel::Strategy& strategy) {
  return strategy.method->averages_everything && !costmodel::in_fragments(strategy);
}

/// Throws UsageError if --checkpoints names a directory that already has checkpoints, without --resume.
void check_checkpoints(const RunRequest& request);

}  // namespace fomoe::trainer
