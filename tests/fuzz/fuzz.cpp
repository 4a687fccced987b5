// One libFuzzer program for all readers: the environment variable FOMOE_READER chooses one. A reader may
// refuse its input with an error of the project. Any other exception, a crash, a hang or undefined behaviour
// ends the program, and libFuzzer saves the input. `fuzz.sh` runs all readers.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "experiments/files/xml_loader.hpp"
#include "platforms/support/atomic_file.hpp"
#include "platforms/support/input_error.hpp"
#include "sim/xml/xml_platform.hpp"
#include "tests/fuzz/readers.hpp"

namespace {

using fomoe::fuzz::Reader;

const std::array kTables = {fomoe::fuzz::file_readers(), fomoe::fuzz::message_readers(),
                            fomoe::fuzz::trainer_readers()};
const Reader* reader = nullptr;
std::string folder;  // in memory, since an input may have to become a file

void list() {
  for (const auto& readers : kTables) {
    for (const Reader& one : readers) std::printf("%s %s\n", one.name, one.seeds);
  }
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  const char* name = std::getenv("FOMOE_READER");
  if (name == nullptr) {
    list();
    std::exit(0);
  }
  for (const auto& readers : kTables) {
    for (const Reader& one : readers) {
      if (std::strcmp(one.name, name) == 0) reader = &one;
    }
  }
  if (reader == nullptr) {
    std::fprintf(stderr, "FOMOE_READER: got \"%s\"; expected one of these names:\n", name);
    list();
    std::exit(2);
  }
  folder = (std::filesystem::path("/dev/shm") / ("fomoe-fuzz-" + std::to_string(getpid()))).string();
  std::filesystem::create_directory(folder);
  fomoe::scenario::use_xml_platform_loader(fomoe::sim::read_xml_platform);
  std::atexit([] { std::filesystem::remove_all(folder); });
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  std::string text(reinterpret_cast<const char*>(bytes), size);
  if (reader->file != nullptr) {
    const std::string path = folder + '/' + reader->file;
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0 || ::write(file, text.data(), size) != static_cast<ssize_t>(size)) std::abort();
    ::close(file);
    text = path;
  }
  try {
    reader->read(text);
  } catch (const fomoe::FileError&) {
  } catch (const fomoe::InputError&) {
  } catch (const fomoe::UsageError&) {
  }
  return 0;
}
