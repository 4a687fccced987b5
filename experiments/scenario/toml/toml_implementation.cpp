// Compiles toml++ into the program, because machines that fomoe-train is copied to may lack the shared
// library.
#define TOML_IMPLEMENTATION
#include <toml++/toml.h>
