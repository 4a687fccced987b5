// Compiles toml++ into the program, because machines that fomoe-train is copied to may lack the shared
// library.
#define TOML_IMPLEMENTATION
// Some of its assertions fail for malformed files, which it refuses without them: `a = [}`.
#define TOML_ASSERT(condition) static_assert(true)
#include <toml++/toml.h>
