#include "experiments/commands/command.hpp"
namespace fomoe::commands {
void run_reproduce(const Arguments&) {}
}  // namespace fomoe::commands
