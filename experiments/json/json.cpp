#include "experiments/json/json.hpp"

template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace fomoe::scenario {

std::string to_text(const Json& document) {
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace fomoe::scenario
