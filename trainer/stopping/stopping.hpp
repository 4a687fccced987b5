// SIGTERM ends a run between two rounds, at all its sites after the same round.
//
// A job manager that needs the machines asks with SIGTERM. Whichever process gets it, all sites finish their
// round, write a checkpoint and end. A process learns of the request within about a second, from the store of
// the rendezvous, and says there that it knows. Once all know, rank 0 chooses the next round but the one that
// it has just finished as the last. The others cannot be farther than in that round, since each round needs
// all sites, so they see the choice at its end.
#pragma once
#include <atomic>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include "trainer/execution/checkpoints.hpp"
#include "trainer/rendezvous/rendezvous.hpp"

namespace fomoe::trainer {

/// The exit status of a process that SIGTERM has ended: what a shell gives for the signal itself.
inline constexpr int kStoppedStatus = 128 + 15;

/// The run has stopped as SIGTERM asked, and its state is in the checkpoints.
class Stopped : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Stopping {
 public:
  /// From now on SIGTERM is a request. If the process has not ended `within_s` later, or if SIGTERM comes
  /// again, it ends at once. `rendezvous` is null if this process trains all sites.
  Stopping(Rendezvous* rendezvous, int rank, double within_s);
  ~Stopping();
  Stopping(const Stopping&) = delete;
  Stopping& operator=(const Stopping&) = delete;

  /// After a round: whether the run stops now that `done` rounds are complete.
  [[nodiscard]] bool stops_after(std::int64_t done);
  /// Waits until the checkpoints of all sites are written, so that none ends before the others have saved,
  /// and throws Stopped. `rounds` is the number of rounds of the whole run.
  [[noreturn]] void stop(std::int64_t done, std::int64_t rounds, Checkpoints& checkpoints);

 private:
  void watch();
  void look_at_store();
  void learn(const std::string& reason);
  [[nodiscard]] bool all_know();

  Rendezvous* rendezvous_;
  int rank_;
  double within_s_;
  std::string reason_;                // written by the thread before asked_
  std::atomic<bool> asked_ = false;   // somebody has asked for it
  std::optional<std::int64_t> last_;  // the number of rounds after which all stop, once rank 0 has chosen
  std::atomic<bool> ends_ = false;
  std::thread watching_;
};

}  // namespace fomoe::trainer
