// toml++ itself, compiled in: Debian's shared library is not on the machines that fomoe-train is carried to.
#define TOML_IMPLEMENTATION
#include <toml++/toml.h>
