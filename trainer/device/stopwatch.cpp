#include "trainer/device/stopwatch.hpp"

#include "trainer/device/cuda_device.hpp"

namespace fomoe::trainer {

namespace {

std::shared_ptr<CudaEvent> recorded_event() {
  auto event = std::make_shared<CudaEvent>();
  event->record();
  return event;
}

}  // namespace

void Stopwatch::start() {
  if (cuda_) {
    parts_.emplace_back(recorded_event(), nullptr);
  } else {
    begin_ = std::chrono::steady_clock::now();
  }
}

void Stopwatch::stop() {
  if (cuda_) {
    parts_.back().second = recorded_event();
  } else {
    add(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count());
  }
}

double Stopwatch::seconds() const {
  double sum = seconds_;
  for (const auto& [begin, end] : parts_) {
    end->wait();
    sum += begin->seconds_until(*end);
  }
  return sum;
}

}  // namespace fomoe::trainer
