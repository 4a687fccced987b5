# The Python module `fomoe` runs the same commands in the Python process. `pip install .` builds it (pyproject.toml).
find_package(Python 3.9 REQUIRED COMPONENTS Interpreter Development.Module)
find_package(nanobind CONFIG REQUIRED)
nanobind_add_module(_fomoe ${CMAKE_CURRENT_LIST_DIR}/module.cpp)
target_link_libraries(_fomoe PRIVATE fomoe_commands)
install(TARGETS _fomoe DESTINATION fomoe COMPONENT python)
