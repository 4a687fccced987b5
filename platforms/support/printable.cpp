#include "platforms/support/printable.hpp"

#include <algorithm>

namespace fomoe {

namespace {

constexpr std::size_t kQuoted = 200;  // characters of an input that a message shows
constexpr std::size_t kEnd = 60;      // of these, those at the end
constexpr std::size_t kPlace = 800;   // of a place and a key: paths are long, and editors need all of one

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

/// The first `size` bytes or a little less, without a part of a character.
std::string_view beginning(std::string_view text, std::size_t size) {
  while (size > 0 && size < text.size() && continues_character(text[size])) --size;
  return text.substr(0, size);
}

std::string_view end_of(std::string_view text, std::size_t size) {
  std::size_t at = text.size() - size;
  while (at < text.size() && continues_character(text[at])) ++at;
  return text.substr(at);
}

/// The length of the control character at `at`: 0 if there is none, 2 for those of ISO 6429 beyond ASCII
/// (U+0080 to U+009F), some of which begin commands to a terminal as an escape does.
std::size_t control_at(std::string_view text, std::size_t at) {
  const auto code = static_cast<unsigned char>(text[at]);
  if ((code < 0x20 && code != '\n' && code != '\t') || code == 0x7f) return 1;
  if (code == 0xc2 && at + 1 < text.size()) {
    const auto next = static_cast<unsigned char>(text[at + 1]);
    if (next >= 0x80 && next < 0xa0) return 2;
  }
  return 0;
}

/// Calls `write` with the code of each control character.
template <class Write>
std::string without_controls(std::string_view text, const Write& write) {
  std::string shown;
  shown.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = control_at(text, at);
    if (length == 0) {
      shown += text[at++];
      continue;
    }
    write(shown, static_cast<unsigned char>(text[at + length - 1]));
    at += length;
  }
  return shown;
}

constexpr const char* kDigits = "0123456789abcdef";

std::string shortened_line(std::string_view line) {
  const std::size_t got = line.find(": got "), expected = line.find("; expected ", got);
  if (got == std::string_view::npos || expected == std::string_view::npos) return std::string(line);
  constexpr std::string_view kGot = ": got ";
  const std::string_view place = line.substr(0, got),
                         quoted = line.substr(got + kGot.size(), expected - got - kGot.size());
  std::string text;
  if (place.size() > kPlace) {
    text.append(beginning(place, kQuoted)).append("…").append(end_of(place, kQuoted));
  } else {
    text.append(place);
  }
  text.append(kGot);
  // The end may say why it is refused: "… (no unit)".
  if (quoted.size() > kQuoted) {
    text.append(beginning(quoted, kQuoted - kEnd)).append("…").append(end_of(quoted, kEnd));
  } else {
    text.append(quoted);
  }
  return text.append(line.substr(expected));
}

}  // namespace

std::string printable(const std::string& text) {
  constexpr std::string_view kExpected = "; expected ";
  const bool several = text.find(kExpected) != text.rfind(kExpected);  // mistakes, each in a line
  std::string shortened;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = several ? std::min(text.find('\n', at), text.size()) : text.size();
    shortened += shortened_line(std::string_view(text).substr(at, end - at));
    if (end < text.size()) shortened += '\n';
    at = end + 1;
  }
  return without_controls(shortened, [](std::string& shown, unsigned char code) {
    shown += {'\\', 'x', kDigits[code / 16], kDigits[code % 16]};
  });
}

std::string printable_answer(std::string_view text) {
  return without_controls(text, [](std::string& shown, unsigned char code) {
    shown += {'\\', 'u', '0', '0', kDigits[code / 16], kDigits[code % 16]};
  });
}

}  // namespace fomoe
