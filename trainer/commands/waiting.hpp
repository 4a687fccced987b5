// trainer.on_lost_site = "wait": a process that lost another site starts itself again, and waits in the
// rendezvous until all sites are there. The state of the network library cannot be repaired in place; a new
// process image with the newest checkpoint can always be made.
#pragma once
#include <string>
#include <vector>

namespace fomoe::trainer {

/// Replaces this process by a new one with the same arguments (those after "run") and --resume. Returns only
/// if that would be in vain: if sites have been missing for longer than `limit_s`, over all attempts since
/// mark_all_present(), or if the program cannot be started.
void wait_for_lost_site(const std::vector<std::string>& arguments, double limit_s, const std::string& reason);

/// Whether wait_for_lost_site() has started this process.
bool waits_again();

/// All sites are there: a later loss starts to wait anew.
void mark_all_present();

}  // namespace fomoe::trainer
