// The loss of models on validation sequences.
#pragma once
#include "trainer/data/batches.hpp"
#include "trainer/whole/whole_model.hpp"

namespace fomoe::trainer {

/// Mean cross-entropy over all validation sequences, in nats, `most` sequences at a time. Adds the use of the
/// experts to `routing`.
double validation_loss(const Model& model, const Batches& batches, std::int64_t most,
                       Routing* routing = nullptr);

/// The mean cross-entropy of the validation sequences, in nats, and its sample standard deviation from one
/// sequence to another; 0 with one sequence.
struct EvaluationLoss {
  double mean = 0, standard_deviation = 0;
};
EvaluationLoss evaluation_loss(const Model& model, const Batches& batches, std::int64_t most);

/// A model with the parameters of the whole model, for evaluation.
Model model_of(const WholeModel& whole, at::Device device, at::ScalarType dtype);

}  // namespace fomoe::trainer
