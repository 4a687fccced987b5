// Compares our own kernels with LibTorch's operators on this machine's device. The JSON output has seconds
// and, for comparison with a copy, the bytes per second of the least traffic.
//
// On a GPU, in bf16, with the presets' sizes, each kernel as a CUDA graph:
//   bench_kernels --output kernels.json
// On a GPU without CUDA graphs, so that the host's launch time counts where it is longer:
//   bench_kernels --cuda-graph off --output kernels.json
// Tiny sizes, also without a GPU, where the kernels are loops on one core:
//   bench_kernels --rehearse --output -
//
// A time is the median of several measurements after warm-up, each of several calls in a row, so that the GPU
// does not wait for the host between them. Figures depend on the machine, so this is not a test.

#include <array>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/benchmarks/kernel_bench.hpp"
#include "trainer/kernels/adam/adam.hpp"
#include "trainer/kernels/codec/codec.hpp"
#include "trainer/kernels/peri_norm/peri_norm.hpp"
#include "trainer/kernels/rotary/rotary.hpp"
#include "trainer/kernels/route/route.hpp"
#include "trainer/kernels/softmax_loss/softmax_loss.hpp"
#include "trainer/model/cross_entropy.hpp"
#include "trainer/model/moe.hpp"
#include "trainer/model/moe_rows.hpp"
#include "trainer/optimizer/outer_optimizer.hpp"
#include "trainer/step/profile.hpp"
#include "trainer/torch.hpp"

using namespace fomoe::trainer;

namespace {

// The bandwidth that other kernels are compared with. A copy_() of a recorded step is not a kernel but a node
// for the copy engine, which is slower (on an H200 2.76 TB/s where kernels reach 3.8), so this kernel changes
// the sign of each value.
void copy(Bench& bench) {
  const std::int64_t bytes = bench.rehearse ? 1 << 16 : std::int64_t{1} << 30;
  const at::Tensor from = at::randn({bytes / 4}, bench.options(at::kFloat));
  at::Tensor to = at::empty_like(from);
  bench.add("copy", "library", {{"bytes", bytes}}, 2.0 * static_cast<double>(bytes),
            [&] { at::neg_out(to, from); });
}

// Payloads leave a GPU and come back to it. Copies from and to pageable memory go through a buffer of the
// driver.
void staging(Bench& bench) {
  const std::int64_t bytes = bench.rehearse ? 1 << 16 : std::int64_t{1} << 28;
  at::Tensor device = at::empty({bytes}, bench.options(at::kByte)).random_();
  for (const bool pinned : {true, false}) {
    if (pinned && !bench.cuda) continue;
    at::Tensor host = at::empty({bytes}, at::TensorOptions(at::kByte).pinned_memory(pinned));
    host.fill_(1);
    const json shape = {{"bytes", bytes}, {"pinned", pinned}};
    const bool by_graph = std::exchange(bench.by_graph, false);  // a pageable copy cannot be recorded
    bench.add("device to host", "library", shape, static_cast<double>(bytes),
              [&] { host.copy_(device, pinned); });
    bench.add("host to device", "library", shape, static_cast<double>(bytes),
              [&] { device.copy_(host, pinned); });
    bench.by_graph = by_graph;
  }
}

// The parts of a layer that are LibTorch's: the products of attention, attention by each of its back ends,
// and the choice of experts.
void attention(Bench& bench, std::int64_t sequences, std::int64_t length, std::int64_t heads,
               std::int64_t head) {
  const std::int64_t tokens = sequences * length, d = heads * head;
  const json shape = {{"sequences", sequences}, {"length", length}, {"heads", heads}, {"d_head", head}};
  const double root = std::sqrt(static_cast<double>(d));
  const auto product = [](const std::vector<at::Tensor>& in) -> std::vector<at::Tensor> {
    return {at::mm(in[0], in[1])};
  };
  bench.add_with_gradients("q, k and v product", "library", shape, 0, 0,
                           {at::randn({tokens, d}, bench.bf16()), at::randn({d, 3 * d}, bench.bf16()) / root},
                           product);
  bench.add_with_gradients("output product", "library", shape, 0, 0,
                           {at::randn({tokens, d}, bench.bf16()), at::randn({d, d}, bench.bf16()) / root},
                           product);

  auto& context = at::globalContext();
  const auto use = [&](bool flash, bool efficient, bool cudnn, bool math) {
    context.setSDPUseFlash(flash);
    context.setSDPUseMemEfficient(efficient);
    context.setSDPUseCuDNN(cudnn);
    context.setSDPUseMath(math);
  };
  std::vector<at::Tensor> heads_of_all;
  for (int i = 0; i < 3; ++i)
    heads_of_all.push_back(at::randn({sequences, heads, length, head}, bench.bf16()));
  for (const std::string back_end : {"flash", "efficient", "cudnn"}) {
    if (!bench.cuda && back_end != "flash") continue;  // the CPU has one
    bench.attempt([&] {
      use(back_end == "flash", back_end == "efficient", back_end == "cudnn", !bench.cuda);
      bench.add_with_gradients("attention, " + back_end, "library", shape, 0, 0, heads_of_all,
                               [](const std::vector<at::Tensor>& in) -> std::vector<at::Tensor> {
                                 return {at::scaled_dot_product_attention(in[0], in[1], in[2], {}, 0, true)};
                               });
    });
  }
  use(true, true, true, true);
}

void router(Bench& bench, std::int64_t tokens, std::int64_t d, std::int64_t scored, std::int64_t chosen) {
  const json shape = {{"tokens", tokens}, {"d", d}, {"experts", scored}, {"active_experts", chosen}};
  const at::Tensor x = at::randn({tokens, d}, bench.bf16()),
                   weight = at::randn({d, scored}, bench.bf16()) / std::sqrt(static_cast<double>(d));
  const at::Tensor scores = at::mm(x, weight);
  const at::Tensor expert = std::get<1>(scores.topk(chosen, 1)).flatten();
  bench.add("router product", "library", shape, 0, [&] { at::mm(x, weight); });
  bench.add("top-k of scores", "library", shape, 0, [&] { scores.topk(chosen, 1); });
  bench.add("route", "own", shape, 0, [&] { route(expert, scored); });
  bench.add("count of choices", "library", shape, 0,
            [&] { at::zeros({scored}, expert.options()).scatter_add_(0, expert, at::ones_like(expert)); });
}

constexpr std::array<std::int64_t, 3> kHeadWidths = {512, 1024, 2048};

// Unembedding, loss and their gradients, which the forward pass computes; the losses of ready logits alone,
// which the kernel reads twice and writes once; and the gradient of the lookup.
void head(Bench& bench, std::int64_t tokens, std::int64_t d, std::int64_t vocabulary) {
  const json shape = {{"tokens", tokens}, {"d", d}, {"vocabulary", vocabulary}};
  const at::Tensor padded = at::randn({padded_vocabulary(vocabulary), d}, bench.bf16()).mul_(0.02);
  padded.narrow(0, vocabulary, padded.size(0) - vocabulary).zero_();
  const at::Tensor embedding = padded.narrow(0, 0, vocabulary).detach().requires_grad_(),
                   hidden = at::randn({tokens, d}, bench.bf16()).requires_grad_(),
                   targets = at::randint(vocabulary, {tokens}, bench.options(at::kLong));
  for (const bool own : {true, false}) {
    bench.add("unembedding and loss with gradients", own ? "own" : "library", shape, 0,
              [&] { linear_cross_entropy(hidden, embedding, targets, 0, {}, 1, padded, own); });
  }
  if (d == kHeadWidths.front()) {  // the logits have the same size for each width
    at::Tensor logits = at::randn({tokens, padded.size(0)}, bench.bf16());
    const double bytes = 2.0 * static_cast<double>(logits.numel());
    for (const bool gradients : {true, false}) {
      for (const bool own : {true, false}) {
        bench.add(gradients ? "losses and gradients of logits" : "losses of logits", own ? "own" : "library",
                  {{"tokens", tokens}, {"vocabulary", vocabulary}}, (gradients ? 3 : 1) * bytes, [&] {
                    (own ? softmax_losses : softmax_losses_of_operators)(logits, targets, vocabulary,
                                                                         gradients);
                  });
      }
    }
  }
  const at::Tensor rows = at::randn({tokens, d}, bench.bf16());
  at::Tensor sum = at::zeros_like(padded);
  bench.add("gradient of the lookup", "library", shape, 0,
            [&] { sum.index_put_({targets}, rows, /*accumulate=*/true); });
}

void peri_norms(Bench& bench, std::int64_t tokens, std::int64_t d) {
  const json shape = {{"tokens", tokens}, {"d", d}};
  const double matrix = 2.0 * static_cast<double>(tokens * d);
  const std::vector<at::Tensor> inputs = {at::randn({tokens, d}, bench.bf16()),
                                          at::randn({tokens, d}, bench.bf16()), at::ones({d}, bench.bf16()),
                                          at::ones({d}, bench.bf16())};
  for (const bool own : {true, false}) {
    bench.add_with_gradients("peri_norm", own ? "own" : "library", shape, 4 * matrix, 6 * matrix, inputs,
                             [&](const std::vector<at::Tensor>& in) -> std::vector<at::Tensor> {
                               const auto f = own ? peri_norm : peri_norm_of_operators;
                               const PeriNormed out = f(in[0], in[1], in[2], in[3], 0.25, 1e-5);
                               return {out.sum, out.normed};
                             });
  }
}

void rotary(Bench& bench, std::int64_t sequences, std::int64_t length, std::int64_t heads,
            std::int64_t head) {
  const json shape = {{"sequences", sequences}, {"length", length}, {"heads", heads}, {"d_head", head}};
  const double matrix = 2.0 * static_cast<double>(sequences * length * heads * head);
  const at::Tensor projection = at::randn({sequences, length, 3, heads, head}, bench.bf16());
  const RotaryTable table = rotary_table(length, head, bench.bf16());
  for (const bool own : {true, false}) {
    bench.add_with_gradients("rotary", own ? "own" : "library", shape, 4 * matrix, 6 * matrix, {projection},
                             [&](const std::vector<at::Tensor>& in) -> std::vector<at::Tensor> {
                               const auto f = own ? rotated_heads : rotated_heads_of_operators;
                               const Heads out = f(in[0], table);
                               return {out.q, out.k, out.v};
                             });
  }
}

// Measures how the time falls with the number of experts held here. If `held` of S experts are here and the
// router prefers none, a share of 1 − held/S of the slots belongs to absent experts. Ideally the time is
// proportional to the share of slots that are computed.
void experts(Bench& bench, std::int64_t tokens, std::int64_t d, std::int64_t width, std::int64_t scored,
             std::int64_t chosen) {
  const at::Tensor x = at::randn({tokens, d}, bench.bf16());
  const at::Tensor router = at::randn({d, scored}, bench.bf16()) / std::sqrt(static_cast<double>(d));
  for (const std::int64_t held : {scored, 3 * scored / 4, scored / 2, scored / 4, scored / 8}) {
    if (held == 0) continue;
    const at::Tensor up = at::randn({held, d, width}, bench.bf16()) / std::sqrt(static_cast<double>(d));
    const at::Tensor down = at::randn({held, width, d}, bench.bf16()) / std::sqrt(static_cast<double>(width));
    const at::Tensor index = at::clamp_max(at::arange(scored, bench.options(at::kLong)), held);
    const auto [scores, chosen_experts] = at::mm(x, router).topk(chosen, 1);
    const double computed = (chosen_experts < held).to(at::kDouble).mean().item<double>();
    const json shape = {{"tokens", tokens},          {"d", d},
                        {"d_expert", width},         {"experts", scored},
                        {"active_experts", chosen},  {"local_experts", held},
                        {"computed_share", computed}};
    // The feed-forward of the computed rows alone, without the router. Its time should be proportional to
    // them.
    const Route sorted = route(index.index_select(0, chosen_experts.flatten()), held);
    bench.add_with_gradients("expert FFN", "own", shape, 0, 0, {x, at::sigmoid(scores), up, down},
                             [&](const std::vector<at::Tensor>& in) -> std::vector<at::Tensor> {
                               return {experts_by_rows(in[0], in[1], in[2], in[3], sorted)};
                             });
    for (const bool own : {true, false}) {
      bench.add_with_gradients(
          "experts", own ? "own" : "library", shape, 0, 0, {x, router, up, down},
          [&](const std::vector<at::Tensor>& in) -> std::vector<at::Tensor> {
            return {moe_forward(in[0], MoeLayer{in[1], in[2], in[3], index, chosen, own})};
          });
    }
  }
}

void codecs(Bench& bench, std::int64_t n) {
  const at::Tensor x = at::randn({n}, bench.options(at::kFloat));
  for (const int bits : {8, 4}) {
    const at::Tensor bytes = encode_blocks(x, bits, 256);
    const double moved = 4.0 * static_cast<double>(n) + static_cast<double>(bytes.numel());
    const json shape = {{"values", n}, {"bits", bits}, {"block", 256}};
    bench.add("encode_blocks", "own", shape, moved, [&] { encode_blocks(x, bits, 256); });
    bench.add("decode_blocks", "own", shape, moved, [&] { decode_blocks(bytes, n, bits, 256); });
  }
  for (const double share : {1.0 / 64, 1.0 / 4}) {
    const json shape = {{"values", n}, {"share", share}, {"group", 4096}};
    bench.add("largest_of_groups", "own", shape, 4.0 * static_cast<double>(n) * (1 + 2 * share),
              [&] { largest_of_groups(x, share, 12); });
    const auto kept = static_cast<std::int64_t>(share * 4096);
    bench.add("largest_of_groups", "library", shape, 4.0 * static_cast<double>(n) * (1 + 2 * share), [&] {
      x.view({-1, 4096}).abs().topk(kept, 1);
    });
  }
}

void outer_steps(Bench& bench, std::int64_t n) {
  const at::Tensor like = at::zeros({n}, bench.options(at::kFloat)), difference = at::randn_like(like);
  OuterOptimizer optimizer({}, {like});
  at::Tensor anchor = at::randn_like(like);
  bench.add("outer step (Nesterov)", bench.cuda ? "own" : "library", {{"values", n}},
            5 * 4.0 * static_cast<double>(n),  // reads θ, b and d, writes θ and b
            [&] {
              optimizer.step(
                  0, [](const at::Tensor& state) { return state; }, anchor, difference);
            });
}

void adam_steps(Bench& bench, std::int64_t n) {
  const at::Tensor master = at::randn({n}, bench.options(at::kFloat)), m = at::zeros_like(master),
                   v = at::zeros_like(master), gradient = at::randn({n}, bench.bf16()),
                   copy = master.to(at::kBFloat16), updates = at::ones({}, bench.options(at::kFloat)),
                   rate = at::full({}, 1e-3, bench.options(at::kDouble)), fp32_rate = rate.to(at::kFloat);
  const json shape = {{"values", n}};
  const double bytes = 28.0 * static_cast<double>(n);  // reads θ, m, v and g, writes θ, m, v and the copy
  bench.add("AdamW", "own", shape, bytes, [&] {
    adam_step({{master}, {m}, {v}, {gradient}, {copy}, {updates}}, {rate, 1, 0.9, 0.95, 1e-8, 0});
  });
  bench.add("AdamW", "library", shape, bytes, [&] {
    std::vector<at::Tensor> masters = {master}, gradients = {gradient.to(at::kFloat)}, first = {m},
                            second = {v};
    at::_fused_adamw_(masters, gradients, first, second, {}, {updates}, fp32_rate, 0.9, 0.95, 0, 1e-8, false,
                      false);
    at::Tensor into = copy;
    into.copy_(master);
  });
}

int run(const std::vector<std::string>& arguments) {
  Bench bench{cuda_available(), false};
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--rehearse") {
      bench.rehearse = true;
    } else if (arguments[i] == "--cuda-graph" && i + 1 < arguments.size() &&
               (arguments[i + 1] == "on" || arguments[i + 1] == "off")) {
      bench.by_graph = arguments[++i] == "on";
    } else if (arguments[i] == "--output" && i + 1 < arguments.size()) {
      bench.output = arguments[++i];
    } else {
      std::cerr << "bench_kernels: got \"" << arguments[i]
                << "\"; expected [--rehearse] [--cuda-graph on|off] --output FILE; for example --output "
                   "kernels.json\n";
      return 2;
    }
  }
  if (bench.output.empty() || (!bench.cuda && !bench.rehearse)) {
    std::cerr << (bench.output.empty()
                      ? "bench_kernels: --output: got nothing; expected a file or -; for example "
                        "--output kernels.json\n"
                      : "bench_kernels: expected a GPU; --rehearse goes without\n");
    return 2;
  }
  at::manual_seed(1);
  bench.attempt([&] { copy(bench); });
  if (bench.rehearse) {
    bench.attempt([&] { staging(bench); });
    bench.attempt([&] { attention(bench, 1, 16, 2, 32); });
    bench.attempt([&] { router(bench, 16, 64, 8, 2); });
    bench.attempt([&] { head(bench, 16, kHeadWidths.front(), 100); });
    bench.attempt([&] { peri_norms(bench, 16, 64); });
    bench.attempt([&] { rotary(bench, 1, 16, 2, 32); });
    bench.attempt([&] { experts(bench, 16, 64, 32, 8, 2); });
    bench.attempt([&] { codecs(bench, 8192); });
    bench.attempt([&] { outer_steps(bench, 8192); });
    bench.attempt([&] { adam_steps(bench, 8192); });
  } else {
    bench.attempt([&] { staging(bench); });
    bench.attempt([&] { attention(bench, 4, 2048, 8, 64); });
    bench.attempt([&] { attention(bench, 4, 2048, 16, 64); });
    bench.attempt([&] { attention(bench, 2, 2048, 32, 64); });
    bench.attempt([&] { router(bench, 8192, 512, 16, 4); });
    bench.attempt([&] { router(bench, 8192, 1024, 32, 8); });
    bench.attempt([&] { router(bench, 8192, 2048, 64, 16); });
    for (const std::int64_t d : kHeadWidths) bench.attempt([&] { head(bench, 8192, d, 200'019); });
    for (const std::int64_t d : {1024, 2048, 4096}) bench.attempt([&] { peri_norms(bench, 16384, d); });
    bench.attempt([&] { rotary(bench, 8, 2048, 16, 128); });
    bench.attempt([&] { experts(bench, 16384, 512, 128, 16, 4); });
    bench.attempt([&] { experts(bench, 8192, 1024, 128, 32, 8); });
    bench.attempt([&] { experts(bench, 8192, 2048, 128, 64, 16); });
    bench.attempt([&] { experts(bench, 4096, 4096, 128, 128, 32); });
    bench.attempt([&] { codecs(bench, std::int64_t{1} << 28); });
    bench.attempt([&] { outer_steps(bench, std::int64_t{1} << 28); });
    bench.attempt([&] { adam_steps(bench, std::int64_t{1} << 28); });
  }
  bench.write(/*complete=*/true);
  return bench.failed ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::cerr << "bench_kernels: " << error.what() << '\n';
    return 1;
  }
}
