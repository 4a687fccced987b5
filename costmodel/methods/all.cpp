#include "costmodel/methods/all.hpp"

namespace fomoe::costmodel {

const std::vector<Method>& methods() {
  static const std::vector<Method> all = {
      ddp(),          diloco(), local_adamw(), fomoe(), fsdp(), expert_parallel_wan(), remote_experts(),
      pipeline_wan(), di_paco()};
  return all;
}

const Method* find_method(std::string_view name) {
  for (const Method& method : methods()) {
    if (method.name == name) return &method;
  }
  return nullptr;
}

}  // namespace fomoe::costmodel
