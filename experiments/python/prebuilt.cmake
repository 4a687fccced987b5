# `pip install .` after a build of this checkout: the Python module links the libraries of build/release, so that only the
# module itself is compiled. Sets FOMOE_PREBUILT if there is such a build and ninja can bring its libraries up to date.
set(FOMOE_PREBUILT OFF)
set(prebuilt ${PROJECT_SOURCE_DIR}/build/release)
if(EXISTS ${prebuilt}/build.ninja AND EXISTS ${prebuilt}/CMakeCache.txt)
  file(STRINGS ${prebuilt}/CMakeCache.txt home REGEX "^CMAKE_HOME_DIRECTORY:INTERNAL=")
  if(home STREQUAL "CMAKE_HOME_DIRECTORY:INTERNAL=${PROJECT_SOURCE_DIR}")  # else the folder was copied from elsewhere
    execute_process(COMMAND ${CMAKE_COMMAND} --build ${prebuilt} --target fomoe_commands OUTPUT_QUIET RESULT_VARIABLE failed)
    if(failed EQUAL 0)
      set(FOMOE_PREBUILT ON)
    endif()
  endif()
endif()
if(FOMOE_PREBUILT)
  message(STATUS "The Python module links the libraries of ${prebuilt}")
  add_library(fomoe_commands INTERFACE)
  target_include_directories(fomoe_commands INTERFACE ${PROJECT_SOURCE_DIR})
  # From the highest level to the lowest, as the linker needs them.
  target_link_libraries(fomoe_commands INTERFACE
    ${prebuilt}/experiments/libfomoe_commands.a ${prebuilt}/experiments/libfomoe_scenario.a ${prebuilt}/sim/libfomoe_sim.a
    ${prebuilt}/costmodel/libfomoe_costmodel.a ${prebuilt}/platforms/libfomoe_platforms.a
    ${prebuilt}/libfomoe_fmt.a Boost::program_options PkgConfig::SIMGRID)
endif()
