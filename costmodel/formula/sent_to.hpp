// To which sites the bytes of the closed form go.
#pragma once
#include <vector>

#include "costmodel/formula/resolved.hpp"

namespace fomoe::costmodel {

/// `bytes`, which a site sends in the run, by receiving site, as the stages of its rounds send them: to the
/// next one of the ring, to the first site, from the first site to each other one, or to all alike.
std::vector<double> sent_to(const Resolved& resolved, int site, double bytes);

}  // namespace fomoe::costmodel
