#include <fmt/format.h>

#include "experiments/cli/answer.hpp"
#include "experiments/cli/options.hpp"
#include "experiments/commands/profile_command.hpp"

namespace fomoe::commands {

void run_profile(const Arguments& arguments) {
  const std::string example = "fomoe profile import train.log --from torchtitan --model small --gpus 8 …";
  if (arguments.empty())
    throw UsageError(fmt::format(
        "fomoe profile: got nothing; expected import, compose or scale; for example {}", example));
  const Arguments rest = {arguments.begin() + 1, arguments.end()};
  if (arguments.front() == "import") return run_profile_import(rest);
  if (arguments.front() == "compose") return run_profile_compose(rest);
  if (arguments.front() == "scale") return run_profile_scale(rest);
  if (arguments.front() == "--help" || arguments.front() == "-h") {
    scenario::write_answer(
        "Usage: fomoe profile import LOG --from FORMAT … --output P.json\n"
        "       fomoe profile compose SHALLOW.json DEEP.json --layers N --output P.json\n"
        "       fomoe profile scale P.json --to ACCELERATOR --output Q.json\n\n"
        "Makes step profiles from existing data; `fomoe-train profile` measures steps on this machine.\n\n"
        "  import   reads step times from the log of another training program\n"
        "  compose  computes a deep model's step times from those of two shallow models\n"
        "  scale    scales step times to another device by the datasheets; reports mark them as assumed\n\n"
        "fomoe profile import --help explains import; compose and scale have the same option.\n");
    return;
  }
  (void)choice("fomoe profile", arguments.front(), {"import", "compose", "scale"});
}

}  // namespace fomoe::commands
