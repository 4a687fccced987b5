#include "trainer/stopping/stopping.hpp"

#include <signal.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>

#include "experiments/text/human.hpp"
#include "platforms/support/parse_number.hpp"

namespace fomoe::trainer {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kAsked = "stop/asked";  // why the run stops
constexpr const char* kLast = "stop/last";    // the number of rounds after which it stops

std::string knows_key(int rank) { return "stop/knows/" + std::to_string(rank); }

volatile std::sig_atomic_t signals = 0;  // how often SIGTERM has come
void count_signal(int) { signals = signals + 1; }

void handle_with(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGTERM, &action, nullptr);
}

void say(const std::string& line) { std::cerr << "fomoe-train: " + line + '\n' << std::flush; }

}  // namespace

Stopping::Stopping(Rendezvous* rendezvous, int rank, double within_s)
    : rendezvous_(rendezvous), rank_(rank), within_s_(within_s) {
  signals = 0;
  handle_with(count_signal);
  watching_ = std::thread([this] { watch(); });
}

Stopping::~Stopping() {
  handle_with(SIG_DFL);
  ends_ = true;
  watching_.join();
}

// The thread notices the signal and the limit of time whatever the training does meanwhile.
void Stopping::watch() {
  constexpr auto kTurn = std::chrono::milliseconds(100), kBetweenLooks = std::chrono::milliseconds(1000);
  std::optional<Clock::time_point> limit;
  Clock::time_point next_look = Clock::now();
  while (!ends_) {
    const auto now = Clock::now();
    if (signals > 0 && !asked_) learn(rendezvous_ ? rendezvous_->own_name() + " got SIGTERM" : "got SIGTERM");
    if (rendezvous_ && !asked_ && now >= next_look) {
      look_at_store();
      next_look = now + kBetweenLooks;
    }
    if (asked_ && !limit)
      limit = now + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(within_s_));
    if (signals > 1 || (limit && now > *limit)) {
      say(signals > 1 ? "SIGTERM came again; the run goes on from the newest checkpoint with --resume"
                      : "the round has not ended within " + commands::human_time(within_s_) +
                            " (--stop-within); the run goes on from the newest checkpoint with --resume");
      std::_Exit(kStoppedStatus);
    }
    std::this_thread::sleep_for(kTurn);
  }
}

void Stopping::look_at_store() {
  try {
    if (const auto reason = rendezvous_->noted(kAsked)) learn(*reason);
  } catch (const SiteLost&) {  // the training notices it too, and reports it
  }
}

void Stopping::learn(const std::string& reason) {
  reason_ = reason;
  try {
    if (rendezvous_) {
      reason_ = rendezvous_->note_first(kAsked, reason);
      rendezvous_->note(knows_key(rank_), "");
    }
  } catch (const SiteLost&) {
  }
  const bool own = signals > 0 && reason_ == reason;
  if (own || rank_ == 0)
    say(reason_ + "; the run stops after this round or the next, within " + commands::human_time(within_s_));
  asked_ = true;
}

bool Stopping::all_know() {
  for (const int rank : rendezvous_->members()) {
    if (!rendezvous_->noted(knows_key(rank))) return false;
  }
  return true;
}

bool Stopping::stops_after(std::int64_t done) {
  if (!asked_) return false;
  if (!rendezvous_) return true;
  if (!last_ && rank_ == 0 && all_know()) {
    last_ = done + 1;
    rendezvous_->note(kLast, std::to_string(*last_));
    return false;
  }
  if (!last_) {
    if (const auto text = rendezvous_->noted(kLast)) last_ = parse_number<std::int64_t>(*text);
  }
  return last_ && done >= *last_;
}

void Stopping::stop(std::int64_t done, std::int64_t rounds, Checkpoints& checkpoints) {
  checkpoints.wait();
  if (rendezvous_) rendezvous_->gather("stopped", "");
  throw Stopped("stopped after round " + std::to_string(done) + " of " + std::to_string(rounds) +
                ", because " + (reason_.starts_with("got ") ? "it " : "") + reason_ +
                "; --resume goes on from there");
}

}  // namespace fomoe::trainer
