// Computes independent values at the same time, each in a child process.
#pragma once
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <functional>
#include <vector>

#include "platforms/support/child.hpp"

namespace fomoe {

/// work(0) … work(count − 1), in this order. Runs as many processes at a time as the machine has cores, and
/// calls `on_value` after each value with the number of values so far. Throws ChildError if a child fails.
/// The caller must not have started threads.
template <typename Value>
std::vector<Value> in_children(std::size_t count, const std::function<Value(std::size_t)>& work,
                               const std::function<void(std::size_t)>& on_value = {}) {
  const auto cores = static_cast<std::size_t>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  std::vector<Value> values;
  std::deque<Child> running;
  for (std::size_t next = 0; values.size() < count;) {
    if (next < count && running.size() < cores) {
      running.emplace_back([&work, next](ChildOutput& output) { output.put(work(next)); });
      ++next;
      continue;
    }
    Value value;
    running.front().get(value);
    running.front().finish();
    running.pop_front();
    values.push_back(value);
    if (on_value) on_value(values.size());
  }
  return values;
}

}  // namespace fomoe
