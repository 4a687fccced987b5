// Events in the order of time; events of the same time in the order in which they were planned.
//
// A link passes one burst after the other, so the events of one source (a link of a way) are planned in the
// order of their times, with few exceptions. Each source has a list of its own, and only the first event of
// each list is in the heap: planning an event costs nothing more than an entry of a list, and the heap stays
// as small as the number of sources.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace fomoe::sim {

template <class Event>
class EventQueue {
 public:
  static constexpr std::uint32_t kAlone = std::numeric_limits<std::uint32_t>::max();

  /// Drops all events.
  void clear() { restart(lists_.size()); }
  /// Drops all events. From now on sources are numbered from 0 to `sources` − 1.
  void restart(std::size_t sources) {
    heap_.clear();
    lists_.assign(sources, {});
    planned_ = 0;
  }
  [[nodiscard]] bool empty() const { return heap_.empty(); }
  /// When the next event is; infinite if there is none.
  [[nodiscard]] double next_s() const {
    return heap_.empty() ? std::numeric_limits<double>::infinity() : heap_.front().at_s;
  }

  /// Plans an event of a source, or of none (kAlone).
  void plan(double at_s, std::uint32_t source, const Event& event) {
    const Entry entry{at_s, planned_++, source, event};
    if (source != kAlone) {
      List& list = lists_[source];
      if (list.waits && at_s >= list.last_s) {
        list.last_s = at_s;
        return list.put(entry);
      }
      if (list.waits) return rise({at_s, entry.order, kAlone, event});  // out of turn, because links changed
      list.waits = true;
      list.last_s = at_s;
    }
    rise(entry);
  }

  /// Takes the next event away. There must be one.
  Event next() {
    const Entry first = heap_.front();
    if (first.source != kAlone) {
      List& list = lists_[first.source];
      if (list.count > 0) {
        sink(list.take());
        return first.event;
      }
      list.waits = false;
    }
    const Entry last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) sink(last);
    return first.event;
  }

 private:
  struct Entry {
    double at_s = 0;
    std::uint64_t order = 0;
    std::uint32_t source = kAlone;
    Event event;
    [[nodiscard]] bool before(const Entry& other) const {
      return at_s != other.at_s ? at_s < other.at_s : order < other.order;
    }
  };
  /// The events of a source behind its first one, which is in the heap while `waits` is true: a ring whose
  /// size is a power of two.
  struct List {
    bool waits = false;
    double last_s = 0;  // of the last event planned
    std::vector<Entry> ring = {};
    std::size_t begin = 0, count = 0;

    void put(const Entry& entry) {
      if (count == ring.size()) {
        std::rotate(ring.begin(), ring.begin() + static_cast<std::ptrdiff_t>(begin), ring.end());
        begin = 0;
        ring.resize(std::max<std::size_t>(8, 2 * count));
      }
      ring[(begin + count++) & (ring.size() - 1)] = entry;
    }
    const Entry& take() {
      const Entry& entry = ring[begin];
      begin = (begin + 1) & (ring.size() - 1);
      --count;
      return entry;
    }
  };

  void rise(const Entry& entry) {
    heap_.push_back(entry);
    std::push_heap(heap_.begin(), heap_.end(), [](const Entry& a, const Entry& b) { return b.before(a); });
  }
  // Puts the entry in the place of the first one.
  void sink(const Entry& entry) {
    std::size_t at = 0;
    for (;;) {
      std::size_t child = 2 * at + 1;
      if (child >= heap_.size()) break;
      if (child + 1 < heap_.size() && heap_[child + 1].before(heap_[child])) ++child;
      if (!heap_[child].before(entry)) break;
      heap_[at] = heap_[child];
      at = child;
    }
    heap_[at] = entry;
  }

  std::vector<Entry> heap_;
  std::vector<List> lists_;
  std::uint64_t planned_ = 0;
};

}  // namespace fomoe::sim
