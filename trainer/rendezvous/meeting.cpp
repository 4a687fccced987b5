// Rendezvous: who takes part in a run, and how all of them begin together.
#include <algorithm>
#include <iterator>
#include <sstream>
#include <thread>

#include "platforms/support/input_error.hpp"
#include "platforms/support/parse_number.hpp"
#include "trainer/rendezvous/connection.hpp"
#include "trainer/rendezvous/waiting_notice.hpp"

namespace fomoe::trainer {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr const char* kAnew = "start anew";  // key of the request that all ranks start anew
constexpr const char* kMembers = "members";  // key of the ranks that take part

std::string here_key(int rank) { return "here/" + std::to_string(rank); }

}  // namespace

void Rendezvous::measure_round_trips() {
  constexpr int kTries = 5;  // the shortest one counts: it met the least other traffic
  round_trip_s_ = timeout_s_;
  try {
    for (int tried = 0; tried < kTries; ++tried) {
      const auto asked = steady_clock::now();
      (void)connection_->store->check({"anything"});
      round_trip_s_ = std::min(round_trip_s_, Seconds(steady_clock::now() - asked).count());
    }
  } catch (const std::exception&) {
    throw store_lost();
  }
  for (const std::string& text : gather("round trip", std::to_string(round_trip_s_))) {
    longest_round_trip_s_ = std::max(longest_round_trip_s_, parse_number<double>(text).value_or(0));
  }
}

void Rendezvous::start_together() {
  constexpr double kMargin_s = 0.1;  // seconds between two requests on a busy machine
  gather("ready", "");
  try {
    if (launch_.rank == 0) {
      // The other ranks must first learn that all are ready and then wait for "go".
      std::this_thread::sleep_for(Seconds(longest_round_trip_s_ + kMargin_s));
      connection_->store->set("go", bytes_of(""));
    } else {
      connection_->store->wait({"go"}, milliseconds_of(timeout_s_));
    }
  } catch (const std::exception&) {
    throw store_lost();
  }
  std::this_thread::sleep_for(Seconds((longest_round_trip_s_ - round_trip_s_) / 2));
}

// Rank 0 waits for all, and after a while only for those that are needed.
void Rendezvous::decide_members() {
  const auto begin = steady_clock::now();
  const auto since = [&] { return Seconds(steady_clock::now() - begin).count(); };
  const double limit_s = std::min(meeting_limit_s(), *lost_->drop_after_s);
  WaitingNotice notice;
  while (true) {
    std::vector<int> here, missing;
    bool enough = true;
    for (int rank = 0; rank < launch_.world; ++rank) {
      const bool there = connection_->store->check({here_key(rank)});
      (there ? here : missing).push_back(rank);
      enough = enough && (there || !lost_->needed[static_cast<std::size_t>(rank)]);
    }
    if (missing.empty() || (enough && since() >= *lost_->drop_after_s)) {
      members_ = here;
      break;
    }
    const auto names = [&] {
      std::string all;
      for (const int rank : missing) all += (all.empty() ? "" : ", ") + name_of(rank);
      return all;
    };
    if (since() > meeting_limit_s())
      throw SiteLost(names() + " did not respond within " + std::to_string(static_cast<int>(since())) + " s");
    throw_if_asked_to_start_anew();
    notice.waits(limit_s, names);
    std::this_thread::sleep_for(milliseconds(20));
  }
  std::string text;
  for (const int rank : members_) text += std::to_string(rank) + ' ';
  connection_->store->set(kMembers, bytes_of(text));
}

void Rendezvous::meet() {
  try {
    connection_->store->set(here_key(launch_.rank), bytes_of(""));
    if (launch_.rank == 0) return decide_members();
  } catch (const SiteLost&) {
    throw;
  } catch (const std::exception&) {
    throw store_lost();
  }
  members_ = {0};              // only rank 0 sets the key
  const auto not_here = [&] {  // rank 0 waits for them, and this rank waits for rank 0
    std::string all;
    for (int rank = 0; rank < launch_.world; ++rank) {
      if (!connection_->store->check({here_key(rank)})) all += (all.empty() ? "" : ", ") + name_of(rank);
    }
    return all;
  };
  wait_for({kMembers}, meeting_limit_s() + timeout_s_, not_here);
  std::istringstream in(text_of(connection_->store->get(kMembers)));
  members_.assign(std::istream_iterator<int>(in), {});
  if (std::find(members_.begin(), members_.end(), launch_.rank) != members_.end()) return;
  ask_to_start_anew();
  const auto deadline = steady_clock::now() + milliseconds_of(lost_->meeting_s);
  while (steady_clock::now() < deadline) {
    std::this_thread::sleep_for(milliseconds(100));
    (void)asked_to_start_anew();  // throws SiteLost when the store has gone
  }
  throw SiteLost("the other sites have not let " + name_of(launch_.rank) + " join again");
}

void Rendezvous::ask_to_start_anew() {
  try {
    connection_->store->set(kAnew, bytes_of(name_of(launch_.rank) + " has come back"));
  } catch (const std::exception&) {  // the store has just gone, which is what this rank waits for
  }
}

std::string Rendezvous::asked_to_start_anew() {
  try {
    return connection_->store->check({kAnew}) ? text_of(connection_->store->get(kAnew)) : "";
  } catch (const std::exception&) {
    throw store_lost();
  }
}

void Rendezvous::throw_if_asked_to_start_anew() {
  const std::string reason = asked_to_start_anew();
  if (!reason.empty()) throw SiteLost(reason);
}

void Rendezvous::agree(const Digest& digest) {
  if (lost_ && lost_->drop_after_s) meet();
  const std::vector<std::string> texts =
      exchange_texts("agree", to_json(digest), /*all_read=*/true, meeting_limit_s());
  for (const int rank : members_) {
    const auto what =
        first_difference(digest_from_json(texts[0]), digest_from_json(texts[static_cast<std::size_t>(rank)]));
    if (!what) continue;
    throw UsageError(name_of(rank) + " differs from rank 0 in " + *what +
                     "; every site needs the same scenario, overrides, seed, data and version");
  }
  measure_round_trips();
}

}  // namespace fomoe::trainer
