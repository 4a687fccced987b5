// Keys of a [[site]]; it may also have most keys of [compute].
#include "experiments/scenario/keys/key_tables.hpp"

namespace fomoe::scenario {

constexpr Key kSiteKeys[] = {
    {"name", Kind::text, "", "",
     "site whose GPUs or step times differ from [compute], or a pattern such as aws:*; the table may have "
     "any key of [compute] except step_variation, draw_samples and those of stragglers",
     "\"site-1\""},
    {"batch_share", Values(Kind::multiple, 1e6), "1", "",
     "part of the batch that this site processes, relative to the parts of the other sites", "0.5"},
};

std::vector<Key> site_keys() { return keys_in("site", kSiteKeys); }

}  // namespace fomoe::scenario
