// Every method, each defined in the file of its name. Adding one: its file, a line here and one in all.cpp.
#pragma once
#include "costmodel/methods/method.hpp"

namespace fomoe::costmodel {

Method ddp();
Method diloco();
Method local_adamw();
Method fomoe();

}  // namespace fomoe::costmodel
