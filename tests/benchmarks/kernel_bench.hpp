// What kernel_benchmark.cpp measures with: rows of times, each the median of several measurements.
#pragma once
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "platforms/support/atomic_file.hpp"
#include "trainer/device/device_info.hpp"
#include "trainer/step/device_graph.hpp"
#include "trainer/torch.hpp"

namespace fomoe::trainer {

using nlohmann::json;

struct Bench {
  bool cuda, rehearse;
  bool by_graph = true;     // on a GPU: each kernel as a CUDA graph
  std::string output = "";  // a file, or - for standard output
  json rows = json::array();
  bool failed = false;

  /// Writes the rows so far, so that a benchmark that is killed leaves them. To standard output it writes
  /// them only when it is complete.
  void write(bool complete) const {
    if (output == "-" && !complete) return;
    const json out = {{"device", cuda ? cuda_name() : cpu_name()},
                      {"versions", versions()},
                      {"rehearsal", rehearse},
                      {"complete", complete},
                      {"kernels", rows}};
    const std::string text = out.dump(2) + '\n';
    if (output == "-") {
      std::cout << text;
    } else {
      fomoe::write_file(output, text);
    }
  }

  /// Runs `work`. If it fails, prints the error and lets the other benchmarks run.
  void attempt(const std::function<void()>& work) {
    try {
      work();
    } catch (const c10::Error& error) {
      failed = true;
      std::cerr << "bench_kernels: " << error.what_without_backtrace() << '\n';
    }
  }

  [[nodiscard]] at::TensorOptions bf16() const { return options(at::kBFloat16); }
  [[nodiscard]] at::TensorOptions options(at::ScalarType type) const {
    return at::TensorOptions(type).device(cuda ? at::Device(at::kCUDA, 0) : at::Device(at::kCPU));
  }

  double median_s(const std::function<void()>& work) const {
    DeviceGraph graph(cuda && by_graph ? graph_pool(at::Device(at::kCUDA, 0)) : nullptr);
    for (int i = 0; i < DeviceGraph::kPlainCalls; ++i) graph.plain(work);
    graph.launch(work);
    constexpr int kCallsInARow = 8;
    std::vector<double> times;
    for (int i = 0; i < (rehearse ? 3 : 20); ++i) {
      if (cuda) {
        at::cuda::CUDAEvent begin(cudaEventDefault), end(cudaEventDefault);
        begin.record();
        for (int call = 0; call < kCallsInARow; ++call) graph.launch(work);
        end.record();
        end.synchronize();
        times.push_back(1e-3 * static_cast<double>(begin.elapsed_time(end)) / kCallsInARow);
      } else {
        const auto begin = std::chrono::steady_clock::now();
        work();
        times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
      }
    }
    std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2),
                     times.end());
    return times[times.size() / 2];
  }

  /// Adds a row with the median time of `work`. `kernels` is "own" or "library". `bytes` is the least number
  /// of bytes to read and write, or 0 if the traffic does not bound the time.
  void add(const std::string& name, const char* kernels, json shape, double bytes,
           const std::function<void()>& work) {
    json row = {{"kernel", name}, {"kernels", kernels}, {"shape", std::move(shape)}};
    row["seconds"] = median_s(work);
    if (bytes > 0) row["bytes_per_s"] = bytes / row["seconds"].get<double>();
    std::cerr << row.dump() << '\n';
    rows.push_back(std::move(row));
    write(/*complete=*/false);
  }

  /// Adds a row for the forward pass alone, and one for the forward pass and the gradients of all inputs.
  void add_with_gradients(const std::string& name, const char* kernels, const json& shape,
                          double forward_bytes, double backward_bytes, const std::vector<at::Tensor>& inputs,
                          const std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>& f) {
    std::vector<at::Tensor> leaves;
    for (const at::Tensor& input : inputs) leaves.push_back(input.detach().requires_grad_());
    std::vector<at::Tensor> gradients;
    for (const at::Tensor& out : f(leaves)) gradients.push_back(at::randn_like(out));
    add(name + " forward", kernels, shape, forward_bytes, [&] { f(leaves); });
    add(name + " forward and backward", kernels, shape, forward_bytes + backward_bytes,
        [&] { torch::autograd::grad(f(leaves), leaves, gradients); });
  }
};

}  // namespace fomoe::trainer
