// Every method, each defined in the file of its name. Adding one: its file, a line here and one in all.cpp.
#pragma once
#include "costmodel/methods/method.hpp"

namespace fomoe::costmodel {

Method ddp();
Method diloco();
Method local_adamw();
Method fomoe();
Method fsdp();
Method expert_parallel_wan();
Method remote_experts();
Method pipeline_wan();
Method di_paco();

}  // namespace fomoe::costmodel
