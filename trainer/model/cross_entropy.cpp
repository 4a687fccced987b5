#include "trainer/model/cross_entropy.hpp"

#include <algorithm>
#include <stdexcept>

#include "costmodel/model/activations.hpp"
#include "trainer/kernels/softmax_loss/softmax_loss.hpp"

namespace fomoe::trainer {
namespace {

// On a CPU, the logits of a chunk share the memory with the data and with other processes.
constexpr std::int64_t kCpuChunkBytes = std::int64_t{512} << 20;
constexpr std::int64_t kVocabularyMultiple = 64;

// Whether the gradient is 1, as far as that can be known without waiting for a device.
bool is_one(const at::Tensor& gradient) {
  if (!gradient.is_cpu()) return true;
  return gradient.scalar_type() == at::kDouble ? *gradient.const_data_ptr<double>() == 1
                                               : *gradient.const_data_ptr<float>() == 1;
}

struct LinearCrossEntropy : torch::autograd::Function<LinearCrossEntropy> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& hidden,
                            const at::Tensor& embedding, const at::Tensor& targets, std::int64_t chunk_tokens,
                            bool wants_gradients, const TiedGradientHandle& tied, double weight,
                            const at::Tensor& rows, bool own_kernels) {
    const std::int64_t tokens = hidden.size(0), vocabulary = embedding.size(0),
                       padding = rows.size(0) - vocabulary;
    const at::ScalarType accumulate = hidden.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    at::Tensor total = at::zeros({}, hidden.options().dtype(accumulate));
    at::Tensor d_hidden, d_embedding;
    if (wants_gradients) d_hidden = at::empty_like(hidden);

    for (std::int64_t begin = 0; begin < tokens; begin += chunk_tokens) {
      const std::int64_t count = std::min(chunk_tokens, tokens - begin);
      const at::Tensor h = hidden.narrow(0, begin, count);
      const at::Tensor target = targets.narrow(0, begin, count);
      at::Tensor logits = at::mm(h, rows.t());
      const auto losses = own_kernels ? softmax_losses : softmax_losses_of_operators;
      total += losses(logits, target, vocabulary, wants_gradients).sum();
      if (!wants_gradients) continue;

      // d(weight·loss)/d logits = (softmax − one-hot)·weight/T. The factor weight/T is applied to the [C, d]
      // operand of both products.
      const at::Tensor& d_logits = logits;
      const double share = weight / static_cast<double>(tokens);
      at::Tensor d_h = d_hidden.narrow(0, begin, count);
      at::mm_out(d_h, d_logits, rows);
      d_h.mul_(share);
      const at::Tensor scaled_h = h * share;
      if (!d_embedding.defined()) {
        d_embedding = at::mm(d_logits.t(), scaled_h);
        // A bf16 sum over many chunks would lose small addends.
        if (count < tokens) d_embedding = d_embedding.to(accumulate);
      } else if (d_embedding.scalar_type() == logits.scalar_type()) {
        d_embedding.addmm_(d_logits.t(), scaled_h);
      } else {
        d_embedding += at::mm(d_logits.t(), scaled_h);
      }
    }
    if (wants_gradients) {
      if (padding > 0) d_embedding = d_embedding.narrow(0, 0, vocabulary);
      context->saved_data["d_hidden"] = d_hidden;
      context->saved_data["d_embedding"] = d_embedding;
      if (tied) context->saved_data["tied"] = c10::IValue::make_capsule(tied);
    }
    return total / static_cast<double>(tokens);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    // The gradients are moved out rather than copied: if the leaf is their sole owner, it can keep them
    // without a copy.
    auto take = [&](const char* key) {
      const auto found = context->saved_data.find(key);
      if (found == context->saved_data.end())
        throw std::logic_error("linear_cross_entropy: backward can run only once");
      at::Tensor tensor = std::move(found->second).toTensor();
      context->saved_data.erase(found);
      return tensor;
    };
    at::Tensor d_hidden = take("d_hidden"), d_embedding = take("d_embedding");
    if (!is_one(gradients[0]))
      throw std::logic_error("linear_cross_entropy: backward must start at the loss");
    const auto found = context->saved_data.find("tied");
    if (found != context->saved_data.end()) {
      const auto tied = c10::static_intrusive_pointer_cast<TiedGradient>(found->second.toCapsule());
      tied->unembedding = std::move(d_embedding).to(d_hidden.scalar_type());
      d_embedding = at::Tensor();
    }
    return {d_hidden, d_embedding, {}, {}, {}, {}, {}, {}, {}};
  }
};

}  // namespace

std::int64_t padded_vocabulary(std::int64_t vocabulary) {
  return (vocabulary + kVocabularyMultiple - 1) / kVocabularyMultiple * kVocabularyMultiple;
}

std::int64_t logit_chunk_tokens(std::int64_t tokens, std::int64_t row_bytes, bool gpu) {
  const std::int64_t bytes = gpu ? costmodel::kLogitChunkBytes : kCpuChunkBytes;
  const std::int64_t most = std::max<std::int64_t>(1, bytes / row_bytes);
  const std::int64_t chunks = std::max<std::int64_t>(1, (tokens + most - 1) / most);
  return (tokens + chunks - 1) / chunks;
}

at::Tensor linear_cross_entropy(const at::Tensor& hidden, const at::Tensor& embedding,
                                const at::Tensor& targets, std::int64_t chunk_tokens,
                                const TiedGradientHandle& tied, double weight, const at::Tensor& padded,
                                bool own_kernels) {
  const at::Tensor rows = padded.defined() ? padded : embedding.detach();
  if (chunk_tokens <= 0) {
    const std::int64_t row_bytes = rows.size(0) * static_cast<std::int64_t>(hidden.element_size());
    chunk_tokens = logit_chunk_tokens(hidden.size(0), row_bytes, hidden.is_cuda());
  }
  const bool wants_gradients =
      at::GradMode::is_enabled() && (hidden.requires_grad() || embedding.requires_grad());
  return LinearCrossEntropy::apply(hidden, embedding, targets, chunk_tokens, wants_gradients, tied, weight,
                                   rows, own_kernels);
}

}  // namespace fomoe::trainer
