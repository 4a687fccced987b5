// All processes of `--local` often fail for the same reason. Their parent says each reason once.
#pragma once
#include <set>
#include <string>

#include "platforms/support/descriptor.hpp"

namespace fomoe::trainer {

/// Says why this process ends: through its parent if that is a SharedErrors, and otherwise on stderr.
void say_error(const std::string& text);

/// The next image of this process says its errors itself, since it has no connection to the parent.
void leave_shared_errors();

/// The parent's end.
class SharedErrors {
 public:
  SharedErrors();
  /// In a child, after fork(): its errors come here.
  void join() const;
  /// Prints what the children have said since the last call, each text once.
  void print();

 private:
  Descriptor reading_, writing_;
  std::string read_;  // the beginning of a text
  std::set<std::string> said_;
};

}  // namespace fomoe::trainer
