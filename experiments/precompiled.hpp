// Precompiles the headers that most files of this folder include. Every file still includes the headers that
// it uses.
#pragma once
#include <fmt/format.h>

#include "costmodel/precompiled.hpp"
#include "experiments/json/json.hpp"
