# Compiles the source files of each folder as one, unless FOMOE_UNITY is off: headers and templates are then read once for a
# folder instead of once for a file, and a whole build takes a third of the time. In return, two files of a folder cannot
# define the same name in an anonymous namespace. The preset dev compiles each file alone, and so does tools/lint.sh.

# Files and folders that are compiled alone nevertheless:
set(FOMOE_ALONE
    costmodel/methods  # each method defines plan() and Formula
    tests/browser tests/costmodel/model tests/wan  # helpers and constants with the same short names
    tests/trainer/gpu/main.cpp experiments/scenario/toml/toml_implementation.cpp  # each compiles a header's library into itself
    trainer/sockets/seen_connections.cpp  # linux/tcp.h and netinet/tcp.h define the same names
    experiments/explore/server.cpp)  # g++ warns of a class with members from an anonymous namespace in an included file
string(REPLACE ";" "|" FOMOE_ALONE "${FOMOE_ALONE}")

function(fomoe_compile_by_folder directory)
  get_property(targets DIRECTORY ${directory} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    if(NOT type MATCHES "^(STATIC_LIBRARY|SHARED_LIBRARY|MODULE_LIBRARY|EXECUTABLE)$")
      continue()
    endif()
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
    get_target_property(sources ${target} SOURCES)
    foreach(source IN LISTS sources)
      string(REPLACE "${PROJECT_SOURCE_DIR}/" "" name "${source}")
      get_filename_component(folder "${name}" DIRECTORY)
      cmake_path(IS_PREFIX PROJECT_BINARY_DIR "${source}" generated)
      if(folder AND NOT generated AND NOT name MATCHES "^(${FOMOE_ALONE})(/|$)")
        string(MAKE_C_IDENTIFIER "${folder}" group)
        set_source_files_properties(${source} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP "${group}")
      endif()
    endforeach()
  endforeach()
  get_property(folders DIRECTORY ${directory} PROPERTY SUBDIRECTORIES)
  foreach(folder IN LISTS folders)
    fomoe_compile_by_folder(${folder})
  endforeach()
endfunction()
fomoe_compile_by_folder(${PROJECT_SOURCE_DIR})
