#include "platforms/support/printable.hpp"

namespace fomoe {

std::string printable(const std::string& text) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string shown;
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if ((code < 0x20 && c != '\n' && c != '\t') || code == 0x7f)
      shown += {'\\', 'x', kDigits[code / 16], kDigits[code % 16]};
    else
      shown += c;
  }
  return shown;
}

}  // namespace fomoe
