#include "trainer/run/run_log.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <ostream>
#include <stdexcept>

#include "costmodel/compute/site_times.hpp"
#include "costmodel/model/flops.hpp"
#include "costmodel/plan/site_shares.hpp"
#include "platforms/support/atomic_file.hpp"
#include "trainer/run/router_figures.hpp"

namespace fomoe::trainer {

using nlohmann::json;

namespace {

double clock_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

json number(const at::Tensor& value) { return value.defined() ? json(value.item<double>()) : json(); }

json routing_json(const Routing& routing, const ExpertChoice& held) {
  json layers = json::array();
  for (const RouterFigures& layer : router_figures(routing, held)) {
    layers.push_back(
        {{"entropy", layer.entropy}, {"load_cv", layer.load_cv}, {"ghost_share", layer.ghost_share}});
  }
  return layers;
}

}  // namespace

std::string path_of_rank(const std::string& path, int rank) {
  if (path.empty() || rank == 0) return path;
  const std::filesystem::path whole(path);
  return (whole.parent_path() /
          (whole.stem().string() + ".rank-" + std::to_string(rank) + whole.extension().string()))
      .string();
}

RunLog::RunLog(const std::string& path, std::ostream& warnings) : path_(path), warnings_(warnings) {
  if (path.empty()) return;
  // Whether it can be written is found out before hours of training.
  file_ = Descriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
  if (file_.get() < 0) throw std::runtime_error(path + ": cannot be written (" + std::strerror(errno) + ")");
}

void RunLog::continues_after(std::int64_t rounds) {
  if (file_.get() < 0 || !std::filesystem::is_regular_file(path_)) return;
  started_ = true;
  std::ifstream old(path_);
  std::string kept;
  bool dropped = false;
  for (std::string line; std::getline(old, line);) {
    const json known = json::parse(line, nullptr, /*allow_exceptions=*/false);
    // A killed process may leave a part of a line at the end.
    const bool keep = known.is_object() && known.value("round", std::int64_t{0}) < rounds;
    if (keep) kept += line + '\n';
    dropped = dropped || !keep;
  }
  // What could be read is not all that is there.
  if (old.bad())
    warnings_ << path_ << ": cannot be read to its end; rounds that are done again are in it twice\n";
  try {
    if (dropped && !old.bad()) write_file(path_, kept);
  } catch (const std::exception& error) {
    warnings_ << error.what() << "; rounds that are done again are in this file twice\n";
  }
  file_ = Descriptor(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
}

void RunLog::add(const std::string& line) {
  constexpr std::size_t kMostWaiting = 64 << 20;
  if (waiting_.size() + line.size() > kMostWaiting) {
    ++lost_;
    return;
  }
  waiting_ += line;
  waiting_ += '\n';
}

void RunLog::flush() {
  if (file_.get() < 0) return;
  if (!started_ && !waiting_.empty()) started_ = ::ftruncate(file_.get(), 0) == 0 || errno == EINVAL;
  while (!waiting_.empty()) {
    const ssize_t written = ::write(file_.get(), waiting_.data(), waiting_.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      const bool first = problem_.empty();
      problem_ = path_ + ": cannot be written (" + std::strerror(errno) + ")";
      if (first) warnings_ << problem_ << "; the lines wait until there is room\n";
      return;
    }
    waiting_.erase(0, static_cast<std::size_t>(written));
  }
  problem_ = lost_ == 0 ? "" : path_ + ": " + std::to_string(lost_) + " lines are lost";
}

void RunLog::step(const StepRecord& record, const std::string& site, const ExpertChoice& held) {
  if (file_.get() < 0) return;
  json line = {{"kind", "step"},
               {"site", site},
               {"round", record.round},
               {"step", record.step},
               {"loss", number(record.loss)},
               {"gradient_norm", number(record.gradient_norm)},
               {"update_norm", number(record.update_norm)},
               {"learning_rate", record.learning_rate},
               {"tokens", record.tokens},
               {"step_s", record.time.seconds()},
               {"routing", routing_json(*record.routing, held)}};
  if (record.skipped) line["skipped"] = true;
  add(line.dump());
}

void RunLog::outer_step(const OuterRecord& record, const std::string& site) {
  if (file_.get() < 0) return;
  add(json{{"kind", "outer_step"},
           {"site", site},
           {"round", record.round},
           {"difference_norm", number(record.norms.difference)},
           {"update_norm", number(record.norms.update)}}
          .dump());
}

void RunLog::transfer(const TransferRecord& record, const std::string& site) {
  if (file_.get() < 0) return;
  add(json{{"kind", "transfer"},
           {"site", site},
           {"round", record.round},
           {"operation", record.operation},
           {"start_s", record.start_s},
           {"transfer_s", record.end_s - record.start_s},
           {"exposed_s", record.exposed_s}}
          .dump());
}

void RunLog::validation(const std::string& site, std::int64_t round, double loss, std::int64_t sequences) {
  if (file_.get() < 0) return;
  add(json{{"kind", "validation"},
           {"site", site},
           {"round", round},
           {"loss", loss},
           {"perplexity", std::exp(loss)},
           {"sequences", sequences}}
          .dump());
}

TrainingProgress::TrainingProgress(std::ostream& out, bool terminal, const costmodel::Scenario& scenario,
                                   const costmodel::Plan& plan, std::int64_t first_round,
                                   std::function<double()> exposed_s)
    : out_(out),
      terminal_(terminal),
      scenario_(scenario),
      plan_(plan),
      first_round_(first_round),
      rounds_done_(first_round),
      exposed_s_(std::move(exposed_s)),
      started_s_(clock_s()) {}

void TrainingProgress::step(const StepRecord& record) {
  if (first_step_ < 0) first_step_ = record.step;
  steps_ = record.step + 1;
  loss_ = record.loss;
  skipped_ += record.skipped ? 1 : 0;
  const double now_s = clock_s();
  const double every_s = terminal_ ? 0.5 : 10;
  if (now_s - started_s_ > 2 && now_s - printed_s_ > every_s) print(now_s - started_s_);
}

void TrainingProgress::print(double elapsed_s) {
  printed_s_ = clock_s();
  const double exposed_share = elapsed_s > 0 ? exposed_s_() / elapsed_s : 0;
  const double sequences =
      static_cast<double>((steps_ - first_step_) * scenario_.workload.global_batch_sequences);
  const double tokens_per_s = sequences * static_cast<double>(scenario_.model.sequence_length) / elapsed_s;
  const double left_s = elapsed_s * static_cast<double>(plan_.steps - steps_) /
                        static_cast<double>(std::max<std::int64_t>(1, steps_ - first_step_));
  char mfu[32] = "";
  if (const double peak = costmodel::training_peak_flops(scenario_); peak > 0) {
    const double flops = costmodel::flops_per_token(scenario_).total();
    std::snprintf(mfu, sizeof mfu, " · MFU %.1f %%", 100 * flops * tokens_per_s / peak);
  }
  char loss[64] = "paced";  // paced runs train nothing and have no loss
  if (loss_.defined()) std::snprintf(loss, sizeof loss, "loss %.3f", loss_.item<double>());
  if (skipped_ > 0) {
    const std::size_t written = std::strlen(loss);
    std::snprintf(loss + written, sizeof loss - written, " · %lld skipped", static_cast<long long>(skipped_));
  }
  char line[256];
  std::snprintf(line, sizeof line,
                "round %lld/%lld · step %lld/%lld · %s · %.3g tokens/s%s · exposed %.1f %% · ETA %.0f s",
                static_cast<long long>(std::min(rounds_done_ + 1, plan_.rounds)),
                static_cast<long long>(plan_.rounds), static_cast<long long>(steps_),
                static_cast<long long>(plan_.steps), loss, tokens_per_s, mfu, 100 * exposed_share, left_s);
  out_ << (terminal_ ? "\r\033[K" : "") << line << (terminal_ ? "" : "\n") << std::flush;
}

void TrainingProgress::end() {
  if (first_step_ >= 0) print(clock_s() - started_s_);
  if (terminal_) out_ << '\n' << std::flush;
}

}  // namespace fomoe::trainer
