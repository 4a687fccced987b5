// One libFuzzer program for all readers: the environment variable FOMOE_READER chooses one. A reader may
// refuse its input with an error of the project. Any other exception, a crash, a hang or undefined behaviour
// ends the program, and libFuzzer saves the input. `fuzz.sh` runs all readers.
#include <unistd.h>

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

const Reader* reader = nullptr;
std::string folder;  // in memory, since each input becomes a file

void list() {
  for (const auto& readers : {fomoe::fuzz::file_readers(), fomoe::fuzz::message_readers()}) {
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
  for (const auto& readers : {fomoe::fuzz::file_readers(), fomoe::fuzz::message_readers()}) {
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
  fomoe::scenario::use_xml_platform_loader(fomoe::sim::read_xml_platform);
  std::atexit([] { std::filesystem::remove_all(folder); });
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  std::filesystem::create_directory(folder);
  const std::string path = folder + '/' + reader->file;
  std::FILE* file = std::fopen(path.c_str(), "wb");
  std::fwrite(bytes, 1, size, file);
  std::fclose(file);
  try {
    reader->read(path);
  } catch (const fomoe::FileError&) {
  } catch (const fomoe::InputError&) {
  } catch (const fomoe::UsageError&) {
  }
  return 0;
}
