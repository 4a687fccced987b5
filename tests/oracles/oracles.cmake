# Tests that compare fomoe with independent programs: SMPI (runs a real MPI program) and ns-3 (simulates TCP packet by packet).
# A test whose program is not installed is skipped with a message. All have the label "oracle".
add_executable(test_oracles main.cpp oracles/comparison.cpp oracles/smpi/smpi.cpp oracles/smpi/smpi_test.cpp
  oracles/ns3/ns3.cpp oracles/ns3/tcp_test.cpp oracles/ns3/collective_test.cpp)
target_link_libraries(test_oracles PRIVATE fomoe_sim fomoe_warnings)
target_include_directories(test_oracles PRIVATE /usr/include/doctest)
target_compile_definitions(test_oracles PRIVATE FOMOE_BINARY_DIR="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")

function(fomoe_oracle name found package)
  if(found)
    add_test(NAME oracle-${name} COMMAND test_oracles --test-suite=${name})
    set_tests_properties(oracle-${name} PROPERTIES LABELS oracle TIMEOUT 300
      ENVIRONMENT "ASAN_OPTIONS=detect_leaks=0")  # ns-3 does not free all objects at its end
  else()
    add_test(NAME oracle-${name} COMMAND ${CMAKE_COMMAND} -E echo "Skipped: ${package} is not installed; ./test.sh -L oracle installs it")
    set_tests_properties(oracle-${name} PROPERTIES LABELS oracle SKIP_REGULAR_EXPRESSION "^Skipped:")
  endif()
endfunction()

find_program(SMPICXX smpicxx)
find_program(SMPIRUN smpirun)
if(SMPICXX AND SMPIRUN)
  set(source ${CMAKE_CURRENT_SOURCE_DIR}/oracles/smpi/all_reduce.cpp)
  set(program ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/oracle_all_reduce)
  add_custom_command(OUTPUT ${program} DEPENDS ${source}
    COMMAND ${SMPICXX} -std=c++20 -O2 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion $<$<BOOL:${FOMOE_WERROR}>:-Werror> ${source} -o ${program}
    COMMAND_EXPAND_LISTS)
  add_custom_target(oracle_all_reduce ALL DEPENDS ${program})
  add_dependencies(test_oracles oracle_all_reduce)
  fomoe_oracle(smpi TRUE libsimgrid-dev)
else()
  fomoe_oracle(smpi FALSE libsimgrid-dev)
endif()

# ns-3's pkg-config files name libraries that its -dev package does not depend on, so they are not used.
find_path(NS3_INCLUDE ns3/internet-module.h)
set(NS3_LIBRARIES "")
foreach(part core network internet point-to-point traffic-control)
  find_library(NS3_${part} ns3-${part})
  list(APPEND NS3_LIBRARIES ${NS3_${part}})
endforeach()
if(NS3_INCLUDE AND NOT NS3_LIBRARIES MATCHES NOTFOUND)
  add_executable(oracle_tcp_transfer oracles/ns3/tcp_transfer.cpp)
  target_link_libraries(oracle_tcp_transfer PRIVATE ${NS3_LIBRARIES} fomoe_warnings)
  set_target_properties(oracle_tcp_transfer PROPERTIES CXX_STANDARD 17)  # the headers of ns-3 3.37 are not C++20
  add_dependencies(test_oracles oracle_tcp_transfer)
  fomoe_oracle(ns3 TRUE libns3-dev)
else()
  fomoe_oracle(ns3 FALSE libns3-dev)
endif()
