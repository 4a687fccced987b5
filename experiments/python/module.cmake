# The Python package `fomoe`: a module that runs the same commands in the Python process, the program itself, and the
# scenarios, platforms and models of the repository as examples. `pip install .` builds it (pyproject.toml).
find_package(Python 3.9 REQUIRED COMPONENTS Interpreter Development.Module)
Python_add_library(_fomoe MODULE ${CMAKE_CURRENT_LIST_DIR}/module.cpp)
# One module for every Python from 3.9 on; module.cpp says how.
set_target_properties(_fomoe PROPERTIES PREFIX "" SUFFIX ".abi3.so")
target_link_libraries(_fomoe PRIVATE fomoe_commands)
if(NOT TARGET fomoe)
  add_executable(fomoe ${PROJECT_SOURCE_DIR}/experiments/main.cpp)
  target_link_libraries(fomoe PRIVATE fomoe_commands)
endif()
install(TARGETS _fomoe DESTINATION fomoe COMPONENT python)
install(TARGETS fomoe DESTINATION fomoe/bin COMPONENT python)
# The charts of fomoe report and fomoe explore, which look for this file beside the program first.
if(EXISTS /usr/share/javascript/chart.js/chart.min.js)
  install(FILES /usr/share/javascript/chart.js/chart.min.js DESTINATION fomoe/bin COMPONENT python)
endif()
# The files lie as in the repository, because scenarios name others by relative paths.
foreach(folder platforms experiments/scenarios experiments/models experiments/data)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder}/ DESTINATION fomoe/examples/${folder} COMPONENT python
          FILES_MATCHING PATTERN "*.toml" PATTERN "*.csv" PATTERN "*.json")
endforeach()
# What tools/build_wheel.sh adds: the licences of the libraries in the wheel.
if(FOMOE_LICENCES)
  install(DIRECTORY ${FOMOE_LICENCES}/ DESTINATION fomoe/licences COMPONENT python)
endif()
