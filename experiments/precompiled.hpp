// The headers that most files here include, precompiled. Every file still includes what it uses.
#pragma once
#include <fmt/format.h>

#include "costmodel/precompiled.hpp"
#include "experiments/json/json.hpp"
