// The whole model: all experts, which may live on different sites, and all dense parameters in one place,
// with the state of the optimisers where it is known. This is the server's view of the FoMoE paper.
//
// Sites that hold the same parameter hold the same values after a synchronisation. Where they differ, because
// the method does not average them, the whole model has their mean.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "costmodel/inputs/model_shape.hpp"
#include "trainer/comm/digest.hpp"
#include "trainer/execution/worker.hpp"

namespace fomoe::trainer {

struct WholeModel {
  costmodel::ModelShape shape;
  ModelConstants constants = {};
  bool skip_token = false;             // the sites' routers scored all experts
  std::int64_t rounds = 0, steps = 0;  // after which the state was taken; 0: unknown
  /// By the name of the parameter (ParameterSpec::name, with all experts), for instance "layers.3.up". The
  /// state of the optimisers has the parameter's name and one of the endings of Worker::state().
  std::map<std::string, at::Tensor> tensors;
  std::vector<std::vector<ExpertSteps>> experts;  // by layer and expert id; empty: unknown
  std::vector<std::string> averaged;              // tensors in which sites differed
  /// The data of the training: the entries of its digest (agreement.hpp) with the names of kDataOfTraining.
  /// Empty: unknown, because an earlier version exported the model.
  Digest trained_on;
};

/// Names of entries in the digest of a run.
inline constexpr const char* kTrainingData = "trainer.data";
inline constexpr const char* kValidationData = "trainer.validation_data";
inline constexpr const char* kValidationSequences = "trainer.validation_sequences";
inline constexpr const char* kDataOfTraining[] = {kTrainingData, kValidationData, kValidationSequences};
/// The value of kValidationData if the validation sequences were the end of the training data.
inline constexpr const char* kEndOfData = "the end of the data";

/// Puts a whole model together from the parts that nodes hold.
class Assembly {
 public:
  Assembly(const costmodel::ModelShape& shape, bool skip_token);

  /// Adds the tensors of one node (Worker::state(), or some of them), which holds the experts `held`.
  void add(const ExpertChoice& held, const std::vector<std::pair<std::string, at::Tensor>>& tensors,
           const std::vector<std::vector<ExpertSteps>>& steps = {});

  /// Adds those experts of one node that no node has had so far, and returns them as (layer, expert).
  std::vector<std::pair<int, int>> fill(const ExpertChoice& held,
                                        const std::vector<std::pair<std::string, at::Tensor>>& tensors,
                                        const std::vector<std::vector<ExpertSteps>>& steps);

  /// Throws std::runtime_error, naming the expert, if no node held an expert.
  WholeModel finish();
  /// The same where some experts may be missing. Their values are zeros.
  WholeModel finish_part() { return std::move(whole_); }

 private:
  struct Part {
    ParameterSpec spec;
    std::vector<int> held;  // by expert, or one entry: how many nodes had it
  };
  /// Adds values to a running mean, which stays bit-equal while all values are equal.
  void add_to_mean(const std::string& name, at::Tensor mean, const at::Tensor& values, int before);

  WholeModel whole_;
  std::map<std::string, Part> parts_;  // by name of the tensor
  std::map<std::string, ParameterSpec> specs_;
};

/// Whether the whole model has outer state, of an optimiser with other moments than the node's: the sums of
/// Nesterov's momentum are up to ten times as large as Adam's means.
bool of_other_outer_optimizer(const WholeModel& whole, Worker& worker);

/// Gives a node its part of the whole model: its experts and all dense parameters, with the state of the
/// optimisers as far as the whole model has it, and without that of_other_outer_optimizer(). Anchors that it
/// does not have become the parameters. Throws std::runtime_error if a parameter is missing or has another
/// shape.
void take_part(const WholeModel& whole, Worker& worker);

/// The rows or columns of the experts that a node holds, from a tensor of the whole model.
at::Tensor part_of(const at::Tensor& whole, const ParameterSpec& spec, const costmodel::ModelShape& shape,
                   const ExpertChoice& held);

}  // namespace fomoe::trainer
