// What all processes of a run must have in common, and what a checkpoint and the run that continues it must
// have in common. Both are lists of names and values, so that a message can name what differs.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "trainer/comm/digest.hpp"
#include "trainer/data/corpus.hpp"
#include "trainer/execution/executor.hpp"
#include "trainer/run/training_run.hpp"
#include "trainer/whole/whole_model.hpp"

namespace fomoe::trainer {

/// Everything that determines the weights after a given number of rounds: seed, model, batch, method, sites
/// and transfers, settings of the optimisers, dtype and data. Also the data of the validation, since reports
/// of the same weights must agree on the loss. Prices, links, failures and the number of tokens are not part
/// of it, although links may change the order of sums, and the number of tokens the later learning rates:
/// such a run goes on with the new order and the new rates.
Digest determines_weights(const RunRequest& request, const costmodel::Plan& plan,
                          const TrainingOptions& options, const std::string& data,
                          const std::optional<Corpus>& validation_corpus = {});
/// Replaces the data, when all sites have listed their files.
void set_data(Digest& digest, const std::string& data);

/// What all processes must have in common: the above, the order of transfers, the number of tokens, and the
/// code of the program.
Digest shared_by_processes(const RunRequest& request, const costmodel::Plan& plan,
                           const Digest& determines_weights);

/// The program's version and commit, for instance "1.0.0, commit 1a2b3c4".
std::string code_version();

/// Distinguishes data: their number of tokens, and a hash.
std::string hash_of(const Corpus& corpus);

/// A hash of all tensors of a whole model.
std::string hash_of(const WholeModel& whole);

/// Hashes of the parameters that the sites of a process hold, for comparison with those of other processes:
/// one entry for all dense parameters together, and one for each expert, since sites hold different experts.
Digest weight_hashes(Executor& executor);

/// Where two processes hold different values of the same parameters, for instance "tokyo differs from paris
/// in expert 3 of layer 0"; empty if they agree. `all` has the hashes of each process, and `names` the
/// processes.
std::string disagreement(const std::vector<Digest>& all, const std::vector<std::string>& names);

}  // namespace fomoe::trainer
