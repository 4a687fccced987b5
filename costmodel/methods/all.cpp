#include "costmodel/methods/all.hpp"

namespace fomoe::costmodel {

const std::vector<Method>& methods() {
#define FOMOE_CALL(name) name(),
  static const std::vector<Method> all = {FOMOE_METHODS(FOMOE_CALL)};
#undef FOMOE_CALL
  return all;
}

const Method* find_method(std::string_view name) {
  for (const Method& method : methods()) {
    if (method.name == name) return &method;
  }
  return nullptr;
}

}  // namespace fomoe::costmodel
