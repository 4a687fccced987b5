// Tests of CollectiveSteps. Each step is executed on sets of contributions instead of numbers, which shows
// whose part each position holds of each chunk.
#include "costmodel/plan/collective_steps.hpp"

#include <doctest/doctest.h>

#include <map>
#include <set>
#include <vector>

using namespace fomoe::costmodel;

namespace {

// state[position][chunk] maps each contributing position to how often its contribution is in the chunk's sum.
using Parts = std::map<int, int>;
using State = std::vector<std::vector<Parts>>;

State played(const CollectiveSteps& steps, State state) {
  for (int s = 0; s < steps.count(); ++s) {
    const State before = state;  // a step sends the state at its start
    steps.each(s, [&](const Sending& sent) {
      REQUIRE(sent.from != sent.to);
      REQUIRE(!sent.whole);
      for (int c = sent.first; c < sent.first + sent.count; ++c) {
        const Parts& arrived = before.at(sent.from).at(c);
        Parts& had = state.at(sent.to).at(c);
        if (s >= steps.reducing()) had.clear();
        for (const auto& [of, times] : arrived) had[of] += times;
      }
    });
  }
  return state;
}

State own_copies(int n) {
  State state(n, std::vector<Parts>(n));
  for (int p = 0; p < n; ++p) {
    for (int c = 0; c < n; ++c) state[p][c] = {{p, 1}};
  }
  return state;
}

Parts one_of_each(int n) {
  Parts all;
  for (int p = 0; p < n; ++p) all[p] = 1;
  return all;
}

bool fits(Collective collective, int n) { return collective != Collective::recursive || (n & (n - 1)) == 0; }

constexpr Collective kAll[] = {Collective::ring, Collective::direct, Collective::recursive};

}  // namespace

TEST_CASE("all-reduce: every position ends with every chunk's sum, and a sum has each contribution once") {
  for (const Collective collective : kAll) {
    for (const int n : {2, 3, 4, 5, 8, 16}) {
      if (!fits(collective, n)) continue;
      CAPTURE(n);
      const State end = played({Pattern::all_reduce, collective, n}, own_copies(n));
      for (const auto& chunks : end) {
        for (const Parts& parts : chunks) CHECK(parts == one_of_each(n));
      }
    }
  }
}

TEST_CASE(
    "reduce-scatter leaves the sum of chunk p at position p, and all-gather distributes chunk p from there") {
  for (const Collective collective : kAll) {
    for (const int n : {2, 3, 4, 8}) {
      if (!fits(collective, n)) continue;
      const CollectiveSteps scatter(Pattern::reduce_scatter, collective, n);
      const State scattered = played(scatter, own_copies(n));
      State own_chunks(n, std::vector<Parts>(n));
      for (int p = 0; p < n; ++p) {
        CHECK(scatter.reduced_chunk(p) == p);
        CHECK(scattered[p][p] == one_of_each(n));
        own_chunks[p][p] = {{p, 1}};
      }
      const State gathered = played({Pattern::all_gather, collective, n}, own_chunks);
      for (int p = 0; p < n; ++p) {
        for (int c = 0; c < n; ++c) CHECK(gathered[p][c] == Parts{{c, 1}});
      }
    }
  }
}

TEST_CASE(
    "after the reducing half of an all-reduce each chunk's sum is at the position that reduced_chunk names") {
  for (const Collective collective : {Collective::ring, Collective::recursive}) {
    const int n = 8;
    const CollectiveSteps steps(Pattern::all_reduce, collective, n);
    State state = own_copies(n);
    for (int s = 0; s < steps.reducing(); ++s) {
      const State before = state;
      steps.each(s, [&](const Sending& sent) {
        for (int c = sent.first; c < sent.first + sent.count; ++c) {
          for (const auto& [of, times] : before[sent.from][c]) state[sent.to][c][of] += times;
        }
      });
    }
    for (int p = 0; p < n; ++p) CHECK(state[p][steps.reduced_chunk(p)] == one_of_each(n));
  }
}

TEST_CASE(
    "chain: the first position has the sum of each chunk after 2(n−1) steps, and all have its chunks after "
    "as many") {
  for (const int n : {2, 3, 5, 8}) {
    CAPTURE(n);
    const CollectiveSteps inwards(Pattern::reduce, Collective::chain, n);
    CHECK(inwards.count() == 2 * (n - 1));
    CHECK(inwards.reducing() == inwards.count());
    const State reduced = played(inwards, own_copies(n));
    for (const Parts& parts : reduced[0]) CHECK(parts == one_of_each(n));
    State of_first(n, std::vector<Parts>(n));
    for (int c = 0; c < n; ++c) of_first[0][c] = {{c, 1}};
    const CollectiveSteps outwards(Pattern::broadcast, Collective::chain, n);
    CHECK(outwards.count() == 2 * (n - 1));
    for (const auto& chunks : played(outwards, of_first)) CHECK(chunks == of_first[0]);
  }
  CHECK(CollectiveSteps(Pattern::reduce, Collective::chain, 1).count() == 0);
}

TEST_CASE(
    "recursive halving and doubling of 8: partners at distances 4, 2, 1, 1, 2, 4 exchange as many chunks") {
  const CollectiveSteps steps(Pattern::all_reduce, Collective::recursive, 8);
  REQUIRE(steps.count() == 6);
  CHECK(steps.reducing() == 3);
  const int distances[] = {4, 2, 1, 1, 2, 4};
  for (int s = 0; s < 6; ++s) {
    steps.each(s, [&](const Sending& sent) {
      CHECK(sent.to == (sent.from ^ distances[s]));
      CHECK(sent.count == distances[s]);
    });
  }
  CHECK_THROWS_AS(CollectiveSteps(Pattern::all_reduce, Collective::recursive, 6), std::invalid_argument);
  CHECK(CollectiveSteps(Pattern::broadcast, Collective::recursive, 6).count() == 1);  // not recursive
}

TEST_CASE(
    "all-to-all broadcast: every position receives each payload once, and a ring forwards what it received") {
  for (const Collective collective : {Collective::ring, Collective::direct}) {
    const int n = 5;
    const CollectiveSteps steps(Pattern::all_to_all_broadcast, collective, n);
    std::vector<std::set<int>> has(n);
    for (int p = 0; p < n; ++p) has[p] = {p};
    for (int s = 0; s < steps.count(); ++s) {
      const auto before = has;
      steps.each(s, [&](const Sending& sent) {
        CHECK(sent.whole);
        CHECK(before[sent.from].contains(sent.first));
        CHECK(has[sent.to].insert(sent.first).second);
      });
    }
    for (const auto& one : has) CHECK(one.size() == n);
  }
}
