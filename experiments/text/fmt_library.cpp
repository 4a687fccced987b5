// The library fmt, compiled into the program. Debian has it as a shared library only, and fomoe-train is
// carried to machines without Debian's libraries. With fmt as a header-only library, compiling each file that
// includes it would take five seconds longer. CMake compiles this file with FMT_HEADER_ONLY and
// -fkeep-inline-functions, so that it has every function of fmt.
#include <fmt/format.h>

#include <locale>

template std::locale fmt::detail::locale_ref::get<std::locale>() const;
