#include "trainer/step/profile.hpp"

#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <numeric>
#include <optional>
#include <ostream>

#include "trainer/device/cpu_share.hpp"
#include "trainer/device/cuda_device.hpp"
#include "trainer/device/device_info.hpp"
#include "trainer/model/model.hpp"
#include "trainer/optimizer/adamw.hpp"
#include "trainer/step/device_graph.hpp"
#include "trainer/step/recorded_step.hpp"

namespace fomoe::trainer {

using costmodel::ProfilePoint;
using costmodel::StepProfile;
using costmodel::StepSample;

namespace {

/// Records the times at the start of a step and at the end of each of its three parts. On a GPU, the times
/// are those of GPU events, since the host runs ahead of the GPU.
class StepClock {
 public:
  explicit StepClock(bool cuda) : cuda_(cuda) {
    if (cuda_) {
      for (auto& event : events_) event.emplace();
    }
  }
  void mark(std::size_t i) {
    if (cuda_) {
      events_[i]->record();
    } else {
      times_[i] = std::chrono::steady_clock::now();
    }
  }
  [[nodiscard]] StepSample sample() {
    if (cuda_) events_[3]->wait();
    return {between(0), between(1), between(2)};
  }

 private:
  [[nodiscard]] double between(std::size_t i) const {
    if (cuda_) return events_[i]->seconds_until(*events_[i + 1]);
    return std::chrono::duration<double>(times_[i + 1] - times_[i]).count();
  }

  bool cuda_;
  std::array<std::optional<CudaEvent>, 4> events_;
  std::array<std::chrono::steady_clock::time_point, 4> times_{};
};

struct RandomBatch {
  at::Tensor tokens, targets;  // int64 [B, S]
};

RandomBatch random_batch(const costmodel::ModelShape& shape, std::int64_t sequences, at::Device device) {
  const at::Tensor text =
      at::randint(shape.vocabulary, {sequences, shape.sequence_length + 1}, at::kLong).to(device);
  return {text.narrow(1, 0, shape.sequence_length).contiguous(),
          text.narrow(1, 1, shape.sequence_length).contiguous()};
}

/// Training steps on batches that take turns, as the number of tokens that each expert gets changes in a
/// training. With graphs, the three parts of a step are recorded separately so that each can be timed. They
/// share a pool, since each part leaves tensors to the next one.
class TimedSteps {
 public:
  TimedSteps(Model& model, std::int64_t sequences, Launches launches)
      : model_(&model),
        optimizer_(model, {}),
        clocks_{StepClock(model.options().device.is_cuda()), StepClock(model.options().device.is_cuda())},
        pool_(launches == Launches::by_graph ? graph_pool(model.options().device) : nullptr),
        forward_(pool_),
        backward_(pool_),
        update_(pool_) {
    constexpr int kBatches = 16;
    for (int i = 0; i < kBatches; ++i)
      batches_.push_back(random_batch(model.shape(), sequences, model.options().device));
    batch_ = {batches_[0].tokens.clone(), batches_[0].targets.clone()};
  }

  /// Returns the times of the next step. On a GPU, one further step is queued before the times are read.
  /// Otherwise the GPU would wait for the host to launch the step's first work, and that wait would count as
  /// forward.
  StepSample next() {
    const std::int64_t ahead = model_->options().device.is_cuda() ? 1 : 0;
    while (started_ <= sampled_ + ahead) start();
    return sample();
  }
  /// Waits until the device has finished all started steps.
  void finish() {
    while (sampled_ < started_) sample();
  }
  /// Runs steps until everything is recorded and the recordings have run once.
  [[nodiscard]] std::int64_t setup_steps() const { return pool_ ? DeviceGraph::kPlainCalls + 1 : 0; }

 private:
  void start() {
    const RandomBatch& next = batches_[static_cast<std::size_t>(started_) % batches_.size()];
    batch_.tokens.copy_(next.tokens);  // graphs read these tensors
    batch_.targets.copy_(next.targets);
    StepClock& clock = clocks_[static_cast<std::size_t>(started_++ % 2)];
    clock.mark(0);
    run(forward_, [this] { loss_ = model_->loss(batch_.tokens, batch_.targets, &routing_); });
    clock.mark(1);
    run(backward_, [this] { loss_.backward(); });
    clock.mark(2);
    optimizer_.prepare();
    run(update_, [this] { optimizer_.update(); });
    optimizer_.count();
    clock.mark(3);
  }
  StepSample sample() { return clocks_[static_cast<std::size_t>(sampled_++ % 2)].sample(); }
  void run(DeviceGraph& graph, const std::function<void()>& work) const {
    started_ <= DeviceGraph::kPlainCalls ? graph.plain(work) : graph.launch(work);
  }

  Model* model_;
  AdamW optimizer_;
  std::vector<RandomBatch> batches_;
  RandomBatch batch_;
  Routing routing_;  // a training counts the choices of the router too
  std::int64_t started_ = 0, sampled_ = 0;
  std::array<StepClock, 2> clocks_;
  std::shared_ptr<GraphPool> pool_;
  at::Tensor loss_;
  DeviceGraph forward_, backward_, update_;
};

/// Median seconds in which the gradients of a micro-batch are added to the sums of a step of several, which
/// have the dtype of the masters (see add_gradient). The compute copies stand for the gradients: they have
/// the same sizes and dtypes. Empty if the sums do not fit into the device's memory.
std::optional<double> accumulation_s(const Model& model, Launches launches) {
  constexpr std::size_t kTimes = 5;
  const bool cuda = model.options().device.is_cuda();
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> sums, gradients;
  try {
    for (const Parameter& parameter : model.parameters()) {
      gradients.push_back(parameter.compute.detach());
      sums.push_back(at::zeros_like(parameter.master.detach()));
    }
  } catch (const c10::OutOfMemoryError&) {
    return std::nullopt;
  }
  const auto add = [&] {
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i].add_(gradients[i]);
  };
  DeviceGraph graph(launches == Launches::by_graph ? graph_pool(model.options().device) : nullptr);
  for (int i = 0; i < DeviceGraph::kPlainCalls; ++i) graph.plain(add);
  graph.launch(add);
  std::vector<double> times;
  for (std::size_t i = 0; i < kTimes; ++i) {
    StepClock clock(cuda);
    clock.mark(0);
    graph.launch(add);
    for (const std::size_t mark : {1, 2, 3}) clock.mark(mark);
    times.push_back(clock.sample().forward_s);
  }
  std::nth_element(times.begin(), times.begin() + kTimes / 2, times.end());
  return times[kTimes / 2];
}

double seconds(const StepSample& sample) { return sample.forward_s + sample.backward_s + sample.optimizer_s; }

double clock_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// When the steps of a point are timed if the device is shared on purpose, by clock_s().
struct Turn {
  double counted_from_s = 0, end_s = 0;
};

/// Which steps of a point are still to be made.
class StepsLeft {
 public:
  StepsLeft(const ProfileOptions& options, const std::optional<Turn>& turn, std::ostream& progress)
      : options_(options), turn_(turn), progress_(progress) {}

  /// `made`: steps of warm-up.
  [[nodiscard]] bool warmup(std::int64_t made, std::int64_t setup_steps) const {
    return made < setup_steps + options_.warmup || (turn_ && clock_s() < turn_->counted_from_s);
  }
  /// `spent_s`: seconds of the timed steps.
  [[nodiscard]] bool timed(std::int64_t made, double spent_s) const {
    if (made < kFewestSteps) return true;
    if (turn_) return clock_s() < turn_->end_s;
    if (made == options_.steps) return false;
    if (spent_s < options_.time_budget_s) return true;
    progress_ << "  the time budget of " << options_.time_budget_s << " s ended this measurement after "
              << made << " of " << options_.steps << " steps\n";
    return false;
  }

 private:
  const ProfileOptions& options_;
  const std::optional<Turn>& turn_;
  std::ostream& progress_;
};

ProfilePoint measure_point(const ProfileOptions& options, std::int64_t sequences, std::int64_t held,
                           const std::optional<Turn>& turn, std::ostream& progress) {
  const bool cuda = options.device == DeviceKind::cuda;
  if (cuda) free_matrix_workspaces();  // of the previous point's stream
  reset_peak_memory(cuda);
  at::manual_seed(options.seed);

  ModelOptions model_options;
  model_options.device = cuda ? at::Device(at::kCUDA, 0) : at::Device(at::kCPU);
  model_options.dtype = options.bf16 ? at::kBFloat16 : at::kFloat;
  model_options.seed = options.seed;
  model_options.kernels = options.kernels;
  model_options.experts.skip_token = options.skip_token;
  std::vector<int> first(static_cast<std::size_t>(held));
  std::iota(first.begin(), first.end(), 0);
  model_options.experts.local.assign(static_cast<std::size_t>(options.model.layers), first);

  Model model(options.model, model_options);
  TimedSteps steps(model, sequences, options.launches);
  const StepsLeft left(options, turn, progress);
  for (std::int64_t i = 0; left.warmup(i, steps.setup_steps()); ++i) steps.next();

  ProfilePoint point{sequences, held, options.skip_token, 0, {}};
  double spent = 0;
  const CpuWatch watch;
  for (std::int64_t i = 0; left.timed(i, spent); ++i) {
    point.samples.push_back(steps.next());
    spent += seconds(point.samples.back());
  }
  steps.finish();
  const CpuWatch::Use use = watch.use(cuda ? 1 : at::get_num_threads());
  point.waited_share = use.waited_share;
  if (cuda)
    point.device_waited_share = costmodel::beyond_fastest(point.samples);
  else
    point.cpu_share = use.cpu_share;
  point.peak_memory_bytes = peak_memory_bytes(cuda);
  point.accumulation_s = accumulation_s(model, options.launches);
  return point;
}

/// Of two measurements of a point, the one whose threads waited less for cores, or else the shorter one: what
/// disturbs a step makes it longer.
const ProfilePoint& better(const ProfilePoint& a, const ProfilePoint& b) {
  if (costmodel::disturbed(a) != costmodel::disturbed(b)) return costmodel::disturbed(a) ? b : a;
  return seconds(median_step(a)) <= seconds(median_step(b)) ? a : b;
}

/// Measures doubtful points again after all others, when what disturbed them may be over.
void measure_doubtful_again(const ProfileOptions& options, std::vector<ProfilePoint>& points,
                            std::ostream& progress) {
  constexpr int kMostPasses = 2;
  for (int pass = 0; pass < kMostPasses; ++pass) {
    for (ProfilePoint& point : points) {
      if (!doubtful(point)) continue;
      progress << "again, because other programs took turns with it: " << point.micro_batch_sequences << " x "
               << options.model.sequence_length << " tokens, " << point.local_experts << " experts held\n"
               << std::flush;
      const ProfilePoint second =
          measure_point(options, point.micro_batch_sequences, point.local_experts, std::nullopt, progress);
      const double before_s = seconds(median_step(point));
      point = better(point, second);
      progress << "  median " << before_s * 1e3 << " ms before, " << seconds(median_step(second)) * 1e3
               << " ms now\n";
    }
  }
}

}  // namespace

bool doubtful(const ProfilePoint& point) {
  constexpr double kMostSpread = 0.25;  // of the median
  if (costmodel::disturbed(point)) return true;
  std::vector<double> steps_s;
  for (const StepSample& sample : point.samples) steps_s.push_back(seconds(sample));
  std::sort(steps_s.begin(), steps_s.end());
  const std::size_t n = steps_s.size();
  return n >= 4 && steps_s[n - 1 - n / 4] - steps_s[n / 4] > kMostSpread * steps_s[n / 2];
}

std::string graph_refused(const ProfileOptions& options) {
  return recording_refused(
      options.model, options.device == DeviceKind::cuda ? at::Device(at::kCUDA, 0) : at::Device(at::kCPU),
      options.bf16 ? at::kBFloat16 : at::kFloat);
}

StepProfile measure_profile(const ProfileOptions& options, std::ostream& progress) {
  const bool cuda = options.device == DeviceKind::cuda;
  at::set_num_threads(options.threads > 0 ? options.threads : default_threads());
  // The softmax of a confident model contains many numbers below 1e-38, on which matrix products on a CPU
  // take 20 times as long. Set before the first parallel region, since threads inherit the setting.
  at::globalContext().setFlushDenormal(true);

  const double begin_s = clock_s();
  StepProfile profile;
  profile.shared_device = options.shared_device;
  profile.model = options.model;
  profile.device_kind = cuda ? "cuda" : "cpu";
  profile.device_name = cuda ? cuda_name() : cpu_name();
  profile.threads = at::get_num_threads();
  profile.dtype = options.bf16 ? "bf16" : "fp32";
  profile.versions = versions();
  profile.measured_at = utc_now();
  progress << profile.device_name << ", " << profile.threads << " threads, " << profile.dtype << ", "
           << profile.versions << (options.launches == Launches::by_graph ? ", CUDA graphs" : "") << '\n';
  if (const std::string refused = cuda ? graph_refused(options) : ""; !refused.empty())
    progress << "each kernel is launched by the host, which takes longer: " << refused << '\n';

  const std::size_t all = options.micro_batch_sequences.size() * options.local_experts.size();
  for (const std::int64_t sequences : options.micro_batch_sequences) {
    for (const std::int64_t held : options.local_experts) {
      progress << '[' << profile.points.size() + 1 << '/' << all << "] " << sequences << " x "
               << options.model.sequence_length << " tokens, " << held << " of " << options.model.experts
               << " experts held\n"
               << std::flush;
      std::optional<Turn> turn;
      if (options.shared_device) {
        const double from_s = begin_s + static_cast<double>(profile.points.size()) * options.time_budget_s;
        turn = {from_s + options.time_budget_s / 4, from_s + options.time_budget_s};
      }
      profile.points.push_back(measure_point(options, sequences, held, turn, progress));
      const StepSample median = median_step(profile.points.back());
      progress << "  median of " << profile.points.back().samples.size() << " steps: forward "
               << median.forward_s * 1e3 << " ms, backward " << median.backward_s * 1e3 << " ms, optimizer "
               << median.optimizer_s * 1e3 << " ms; peak memory "
               << static_cast<double>(profile.points.back().peak_memory_bytes) / (1 << 30) << " GiB\n";
    }
  }
  if (!options.shared_device) measure_doubtful_again(options, profile.points, progress);
  return profile;
}

}  // namespace fomoe::trainer
