#include "trainer/commands/synchronisation_profile.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <numeric>
#include <ostream>
#include <utility>
#include <vector>

#include "costmodel/plan/building_blocks.hpp"
#include "trainer/comm/collectives.hpp"
#include "trainer/device/cuda_device.hpp"
#include "trainer/execution/worker.hpp"
#include "trainer/measurement/rehearsal.hpp"

namespace fomoe::trainer {

using costmodel::ElementType;
using costmodel::Exchange;
using costmodel::Transfer;

namespace {

constexpr int kRepetitions = 4;  // the first one allocates buffers and is not counted
constexpr int kSites = 8;        // sparse payloads are added one after another

/// The site that is timed. Everything else that sends or receives is imaginary.
class TheSite : public Transport {
 public:
  explicit TheSite(const std::vector<costmodel::Node>& nodes) : Transport(nodes, {0}) {}

 protected:
  void move(const std::vector<Message*>& /*messages*/, int /*channel*/) override {}
};

/// The average of the pseudo-gradients of so many sites, of what a site holds: dense parameters, and the
/// first `held` experts.
Transfer average(const costmodel::ModelShape& shape, const std::vector<costmodel::TensorGroup>& groups,
                 int held, const costmodel::WireFormat& format, int sites) {
  std::vector<costmodel::GroupId> ids = {costmodel::kDenseGroup};
  for (int layer = 0; layer < static_cast<int>(shape.layers); ++layer) {
    for (int expert = 0; expert < held; ++expert)
      ids.push_back(costmodel::expert_group(shape, layer, expert));
  }
  std::vector<costmodel::NodeId> nodes(static_cast<std::size_t>(sites));
  std::iota(nodes.begin(), nodes.end(), 0);
  Exchange exchange{std::move(nodes),
                    {costmodel::make_payload(groups, costmodel::Content::pseudo_gradient,
                                             costmodel::TrafficClass::dense, format, ids)}};
  // Sites add the sparse payloads of others themselves.
  if (format.sparse())
    return {costmodel::Pattern::all_to_all_broadcast, costmodel::Collective::direct, {std::move(exchange)}};
  return {costmodel::Pattern::all_reduce, costmodel::Collective::ring, {std::move(exchange)}};
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

/// A worker at each of kSites sites.
std::vector<costmodel::Node> nodes_of_sites() {
  std::vector<costmodel::Node> nodes;
  for (int site = 0; site < kSites; ++site) nodes.push_back({costmodel::NodeKind::worker, site});
  return nodes;
}

class TimedSynchronisations {
 public:
  /// `lossy`: integer formats, whose errors a site keeps for the next payload.
  TimedSynchronisations(const ProfileOptions& options, int held, bool lossy)
      : device_(options.device == DeviceKind::cuda ? at::Device(at::kCUDA, 0) : at::Device(at::kCPU)),
        shape_(options.model),
        held_(held),
        groups_(costmodel::tensor_groups(shape_, /*skip_token=*/false)),
        worker_(shape_, groups_, worker_options(options, lossy)),
        site_(nodes_of_sites()),
        imaginary_(site_) {
    transfer_options_.device = device_;
    transfer_options_.partial = &partial_;
    if (lossy)
      transfer_options_.lost = [this](const PayloadAt& at, const at::Tensor& lost) {
        worker_.keep_residual(at.payload, lost);
      };
  }

  /// Seconds of one synchronisation's payloads and of its outer step.
  std::pair<double, double> once(const Transfer& transfer) {
    const double start_s = clock_s();
    TransferRun run(transfer, imaginary_, transfer_options_);
    run.expect();
    run.read([this](const PayloadAt& at) {
      at::Tensor flat = worker_.read(at.payload);
      sum_ += flat.sum().item<double>();  // a training sums what it sends, to see whether it is finite
      return flat;
    });
    run.exchange();
    run.deliver([this](const PayloadAt& at, const at::Tensor& mean) {
      worker_.write(at.payload, mean, Anchor::kept);
    });
    const double between_s = clock_s();
    worker_.outer_step(true);
    return {between_s - start_s, clock_s() - between_s};
  }

  /// The median time of a synchronisation's payloads in this format among so many sites, and what they
  /// exchange. Adds the times of outer steps, per parameter, to `outer_steps_s`.
  std::pair<double, Exchange> payloads_s(const costmodel::WireFormat& format, int sites,
                                         std::vector<double>& outer_steps_s) {
    const Transfer transfer = average(shape_, groups_, held_, format, sites);
    const Exchange& exchange = transfer.exchanges.front();
    std::vector<double> times_s;
    for (int i = 0; i < kRepetitions; ++i) {
      const auto [payload_s, outer_step_s] = once(transfer);
      if (i == 0) continue;
      times_s.push_back(payload_s);
      outer_steps_s.push_back(outer_step_s / static_cast<double>(exchange.payloads.front().elements));
    }
    return {median(std::move(times_s)), exchange};
  }

 private:
  [[nodiscard]] WorkerOptions worker_options(const ProfileOptions& options, bool lossy) const {
    WorkerOptions worker;
    worker.keeps_residual = lossy;
    worker.model.device = device_;
    worker.model.dtype = options.bf16 ? at::kBFloat16 : at::kFloat;
    worker.model.seed = options.seed;
    worker.model.kernels = options.kernels;
    worker.model.experts.skip_token = options.skip_token;
    std::vector<int> first(static_cast<std::size_t>(held_));
    std::iota(first.begin(), first.end(), 0);
    worker.model.experts.local.assign(static_cast<std::size_t>(shape_.layers), first);
    worker.outer.emplace();
    worker.keeps_anchor = true;
    return worker;
  }
  /// Waits until the device has done what was asked of it.
  [[nodiscard]] double clock_s() const {
    if (device_.is_cuda()) wait_for_device(device_);
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }

  at::Device device_;
  costmodel::ModelShape shape_;
  int held_;
  std::vector<costmodel::TensorGroup> groups_;
  Worker worker_;
  TheSite site_;
  RehearsalTransport imaginary_;
  PartialMeans partial_;
  TransferOptions transfer_options_;
  double sum_ = 0;
};

/// What each site more adds tells the time of one payload; the rest is that of choosing.
costmodel::SynchronisationTimes::Sparse sparse_times(TimedSynchronisations& synchronisations,
                                                     std::vector<double>& outer_steps_s) {
  const costmodel::WireFormat format = costmodel::top_k_format(ElementType::bf16, 64.0 / 4096, 12);
  const auto [of_two_s, exchange] = synchronisations.payloads_s(format, 2, outer_steps_s);
  const double of_all_s = synchronisations.payloads_s(format, kSites, outer_steps_s).first;
  const auto elements = static_cast<double>(exchange.payloads.front().elements);
  // What can be measured is not exact: neither part is less than a hundredth of both.
  const double add_s = std::clamp((of_all_s - of_two_s) / (kSites - 2), 0.01 * of_two_s, 0.99 * of_two_s);
  return {(of_two_s - add_s) / elements, add_s / elements};
}

}  // namespace

std::optional<costmodel::SynchronisationTimes> measure_synchronisation(const ProfileOptions& options,
                                                                       std::ostream& progress) {
  const auto held =
      static_cast<int>(*std::max_element(options.local_experts.begin(), options.local_experts.end()));
  progress << "synchronisation with " << held << " of " << options.model.experts << " experts held\n"
           << std::flush;
  costmodel::SynchronisationTimes measured;
  std::vector<double> outer_steps_s;  // per parameter
  try {
    for (const bool lossy : {false, true}) {
      TimedSynchronisations synchronisations(options, held, lossy);
      const auto dtypes = lossy ? std::array{ElementType::int8, ElementType::int4}
                                : std::array{ElementType::fp32, ElementType::bf16};
      for (const ElementType dtype : dtypes) {
        const auto [seconds, exchange] =
            synchronisations.payloads_s(costmodel::plain_format(dtype), 2, outer_steps_s);
        measured.payload_rates.push_back({dtype, static_cast<double>(exchange.bytes()) / seconds});
        progress << "  payloads in " << to_string(dtype) << ": "
                 << measured.payload_rates.back().bytes_per_s / 1e9 << " GB/s\n";
      }
      if (!lossy) continue;
      measured.sparse = sparse_times(synchronisations, outer_steps_s);
      progress << "  sparse payloads: choosing takes " << measured.sparse->choose_s_per_element * 1e9
               << " ns per element, adding those of another site " << measured.sparse->add_s_per_element * 1e9
               << " ns\n";
    }
  } catch (const c10::OutOfMemoryError&) {
    progress << "  not measured: the state of a synchronisation does not fit into the GPU's memory\n";
    return std::nullopt;
  }
  measured.outer_step_s_per_parameter = median(std::move(outer_steps_s));
  progress << "  outer step: " << measured.outer_step_s_per_parameter * 1e9 << " ns per parameter\n";
  return measured;
}

}  // namespace fomoe::trainer
