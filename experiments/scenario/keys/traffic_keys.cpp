// Keys of the traffic beside the synchronisation.
#include "experiments/scenario/keys/members.hpp"

namespace fomoe::scenario {

using costmodel::ExtraTraffic;

constexpr Key kTrafficKeys[] = {
    {"data_site", Kind::text, "", "every site has its own data",
     "site that holds the data set; the other sites read from it during training", "\"site-0\""},
    {"data_bytes_per_token", Values(Kind::count, 1e6), "4", "",
     "number of bytes read per token, with data_site", "4", member<&ExtraTraffic::data_bytes_per_token>,
     plan},
    {"checkpoint_site", Kind::text, "", "no checkpoint leaves its site",
     "site to which all other sites upload their training state", "\"site-0\""},
    {"checkpoint_rounds", Values(Kind::count, 1e12), "1", "", "number of rounds between two checkpoints",
     "100", member<&ExtraTraffic::checkpoint_rounds>, plan},
    {"rejoin_site", Kind::text, "", "no site is lost",
     "site that repeatedly rejoins without its training state and fetches it from another site",
     "\"site-1\""},
    {"rejoin_rounds", Values(Kind::count, 1e12), "1", "", "number of rounds between two rejoins", "1000",
     member<&ExtraTraffic::rejoin_rounds>, plan},
};

std::vector<Key> traffic_keys() { return keys_in("traffic", kTrafficKeys); }

}  // namespace fomoe::scenario
