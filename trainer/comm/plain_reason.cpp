#include "trainer/comm/plain_reason.hpp"

#include <regex>

namespace fomoe::trainer {

std::string plain_reason(const std::exception& error) {
  static const std::regex place(R"(\[?[^\s\[\]()]*\.(cc|cpp|c|h|hpp|cu):[0-9]+\]?:?)"), spaces(" {2,}");
  std::string text = error.what();
  text = text.substr(0, text.find('\n'));
  text = std::regex_replace(std::regex_replace(text, place, ""), spaces, " ");
  const std::size_t begin = text.find_first_not_of(' ');
  return begin == std::string::npos ? "no reason was given"
                                    : text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

}  // namespace fomoe::trainer
