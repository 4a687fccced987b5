// How things are dealt to the sites of a run, or to the files of a corpus. This header does not include
// LibTorch.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace fomoe::trainer {

/// How many of `wanted` items each taker gets if they take one item each in turn, and no taker takes more
/// than its limit. The sum is less than `wanted` if the limits are.
std::vector<std::int64_t> deal_evenly(const std::vector<std::int64_t>& limits, std::int64_t wanted);

/// Which site gets each item: from the largest item to the smallest, each goes to the site that has least so
/// far. Equal items keep their order, and of equal sites the first one gets the item.
std::vector<std::size_t> deal_by_size(const std::vector<std::int64_t>& sizes, std::size_t sites);

}  // namespace fomoe::trainer
