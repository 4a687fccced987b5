// SHA-256 (FIPS 180-4), used to identify the file that a number was read from.
#pragma once
#include <string>
#include <string_view>

namespace fomoe::step_profiles {

/// Returns 64 lower-case hexadecimal digits, as `sha256sum` prints them.
std::string sha256_hex(std::string_view bytes);

}  // namespace fomoe::step_profiles
