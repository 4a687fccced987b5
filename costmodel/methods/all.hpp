// The list of all methods, each defined in the file of its name. A new method needs its file and a line here.
#pragma once
#include <string_view>
#include <vector>

#include "costmodel/plan/method.hpp"

// In the order in which `fomoe list methods` prints the methods.
#define FOMOE_METHODS(METHOD) \
  METHOD(centralised)         \
  METHOD(ddp)                 \
  METHOD(local_sgd)           \
  METHOD(fedavg)              \
  METHOD(async_diloco)        \
  METHOD(decoupled_diloco)    \
  METHOD(diloco)              \
  METHOD(eager_diloco)        \
  METHOD(hierarchical_diloco) \
  METHOD(local_adamw)         \
  METHOD(des_loc)             \
  METHOD(streaming_diloco)    \
  METHOD(sparse_loco)         \
  METHOD(diloco_x)            \
  METHOD(gossip)              \
  METHOD(noloco)              \
  METHOD(demo)                \
  METHOD(dept)                \
  METHOD(fomoe)               \
  METHOD(fsdp)                \
  METHOD(expert_parallel_wan) \
  METHOD(remote_experts)      \
  METHOD(pipeline_wan)        \
  METHOD(di_paco)

namespace fomoe::costmodel {

#define FOMOE_DECLARE(name) Method name();
FOMOE_METHODS(FOMOE_DECLARE)
#undef FOMOE_DECLARE

const std::vector<Method>& methods();
/// Returns nullptr if no method has that name.
const Method* find_method(std::string_view name);

}  // namespace fomoe::costmodel
