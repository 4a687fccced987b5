// Names the file when somebody makes it shorter while it is mapped into memory. The system then ends a reader
// by SIGBUS, which says nothing.
#pragma once
#include <cstddef>
#include <string>

namespace fomoe::trainer {

/// From now on, a read from these bytes of memory that fails prints one line with the path and ends the
/// process with status 1. There may be 64 such files at a time; further ones are not named.
void name_if_it_shrinks(const void* begin, std::size_t bytes, const std::string& path);
void forget_mapping(const void* begin);

}  // namespace fomoe::trainer
