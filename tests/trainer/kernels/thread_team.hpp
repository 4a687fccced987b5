// A team of CPU threads in place of a block of GPU threads. It tests with real threads which data members of
// a row function share, and where they wait for each other.
#pragma once
#include <barrier>
#include <thread>
#include <vector>

#include "trainer/kernels/team.hpp"

namespace fomoe::trainer::testing {

class ThreadTeam {
 public:
  class Member {
   public:
    Member(ThreadTeam& team, int rank) : team_(&team), rank_(rank) {}
    [[nodiscard]] int rank() const { return rank_; }
    [[nodiscard]] int size() const { return static_cast<int>(team_->values_.size()); }
    void wait() const { team_->barrier_.arrive_and_wait(); }
    template <class S>
    [[nodiscard]] S sum(S value) const {
      S total = 0;
      for (const double other : all(static_cast<double>(value))) total += static_cast<S>(other);
      return total;
    }
    template <class S>
    [[nodiscard]] S largest(S value) const {
      for (const double other : all(static_cast<double>(value))) {
        if (value < static_cast<S>(other)) value = static_cast<S>(other);
      }
      return value;
    }
    /// Exact for sums of integers below 2^53.
    template <class S>
    [[nodiscard]] Before<S> before(S value) const {
      Before<S> out{0, 0};
      int rank = 0;
      for (const double other : all(static_cast<double>(value))) {
        if (rank++ < rank_) out.sum += static_cast<S>(other);
        out.all += static_cast<S>(other);
      }
      return out;
    }

   private:
    [[nodiscard]] std::vector<double> all(double own) const {
      team_->values_[static_cast<std::size_t>(rank_)] = own;
      wait();
      std::vector<double> out = team_->values_;
      wait();  // all members have read before the next value is written
      return out;
    }

    ThreadTeam* team_;
    int rank_;
  };

  explicit ThreadTeam(int size) : values_(static_cast<std::size_t>(size)), barrier_(size) {}

  /// Runs work(member) in one thread for each member.
  template <class Work>
  void run(const Work& work) {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < static_cast<int>(values_.size()); ++rank)
      threads.emplace_back([this, rank, &work] { work(Member(*this, rank)); });
  }

 private:
  std::vector<double> values_;
  std::barrier<> barrier_;
};

}  // namespace fomoe::trainer::testing
