# test_trainer runs anywhere. test_gpu prints "no GPU: skipped" if there is no GPU, and ctest reports it as
# skipped.
file(GLOB TRAINER_TEST_SOURCES CONFIGURE_DEPENDS trainer/*.cpp trainer/*/*.cpp)
list(FILTER TRAINER_TEST_SOURCES EXCLUDE REGEX "/tests/trainer/(emulated_gpu|gpu|live)/")  # targets of their own below
if(NOT FOMOE_CUDA)  # it reads CUDA's headers
  list(FILTER TRAINER_TEST_SOURCES EXCLUDE REGEX "/emulated_kernels_test\\.cpp$")
endif()
add_executable(test_trainer main.cpp ${TRAINER_TEST_SOURCES})
set(TRAINER_TEST_PROGRAMS test_trainer)
if(FOMOE_CUDA)
  file(GLOB TRAINER_GPU_TEST_SOURCES CONFIGURE_DEPENDS trainer/gpu/*.cpp)
  add_executable(test_gpu ${TRAINER_GPU_TEST_SOURCES})
  list(APPEND TRAINER_TEST_PROGRAMS test_gpu)
endif()
foreach(program ${TRAINER_TEST_PROGRAMS})
  target_link_libraries(${program} PRIVATE fomoe_trainer fomoe_warnings)
  target_include_directories(${program} PRIVATE /usr/include/doctest)
  # Programs are compiled with -fPIE, libraries with -fPIC: a shared precompiled header needs the same flag.
  set_target_properties(${program} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${program} PRIVATE -fPIC)
  target_precompile_headers(${program} REUSE_FROM fomoe_trainer)
  set_target_properties(${program} PROPERTIES BUILD_RPATH "${FOMOE_TORCH_DIR}/lib")
endforeach()
if(FOMOE_CUDA)
  # Our CUDA kernels on the CPU, thread by thread, from the files that nvcc compiles.
  set(EMULATED_GPU ${CMAKE_CURRENT_SOURCE_DIR}/trainer/emulated_gpu)
  set(EMULATED_OUT ${CMAKE_CURRENT_BINARY_DIR}/emulated_gpu)
  file(GLOB_RECURSE KERNEL_FILES CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/trainer/kernels ${PROJECT_SOURCE_DIR}/trainer/kernels/*)
  foreach(file ${KERNEL_FILES})
    string(REGEX REPLACE "\\.cu$" ".cu.cpp" name ${file})
    list(APPEND EMULATED_FILES ${EMULATED_OUT}/emulated/kernels/${name})
  endforeach()
  list(TRANSFORM KERNEL_FILES PREPEND ${PROJECT_SOURCE_DIR}/trainer/kernels/)
  add_custom_command(OUTPUT ${EMULATED_FILES} DEPENDS ${KERNEL_FILES} ${EMULATED_GPU}/emulate.py
                     COMMAND python3 ${EMULATED_GPU}/emulate.py ${PROJECT_SOURCE_DIR}/trainer/kernels ${EMULATED_OUT} VERBATIM)
  add_library(emulated_kernels STATIC ${EMULATED_FILES} ${EMULATED_GPU}/emulated_gpu.cpp)
  # The replacements of CUDA's headers must be found before the originals.
  target_include_directories(emulated_kernels BEFORE PRIVATE ${EMULATED_GPU})
  target_include_directories(emulated_kernels PUBLIC ${EMULATED_OUT})
  target_link_libraries(emulated_kernels PUBLIC fomoe_trainer)
  target_precompile_headers(emulated_kernels REUSE_FROM fomoe_trainer)
  # Fibers jump between stacks, which _FORTIFY_SOURCE reports as an error. A precompiled header would already
  # define _FORTIFY_SOURCE.
  set_source_files_properties(${EMULATED_GPU}/emulated_gpu.cpp PROPERTIES SKIP_PRECOMPILE_HEADERS ON COMPILE_OPTIONS -U_FORTIFY_SOURCE)
  target_link_libraries(test_trainer PRIVATE emulated_kernels)
  # Benchmarks our kernels and LibTorch's operators; experiments/measure_gpu.sh runs it on a GPU.
  add_executable(bench_kernels benchmarks/kernel_benchmark.cpp)
  target_link_libraries(bench_kernels PRIVATE fomoe_trainer nlohmann_json::nlohmann_json fomoe_warnings)
  set_target_properties(bench_kernels PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(bench_kernels PRIVATE -fPIC)
  target_precompile_headers(bench_kernels REUSE_FROM fomoe_trainer)
  set_target_properties(bench_kernels PROPERTIES BUILD_RPATH "${FOMOE_TORCH_DIR}/lib")
endif()
target_compile_definitions(test_trainer PRIVATE FOMOE_SOURCE_DIR="${PROJECT_SOURCE_DIR}" FOMOE_BINARY_DIR="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
set_source_files_properties(main.cpp PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
add_dependencies(test_trainer fomoe-train)

add_test(NAME trainer COMMAND test_trainer --test-suite-exclude=slow)
set_tests_properties(trainer PROPERTIES LABELS trainer TIMEOUT 300 COST 200)
# Tokenizes local texts, with Python's standard library alone, and trains on them.
add_test(NAME tokenize-corpus COMMAND python3 ${CMAKE_CURRENT_SOURCE_DIR}/trainer/data/tokenize_corpus_test.py)
set_tests_properties(tokenize-corpus PROPERTIES LABELS trainer TIMEOUT 120 ENVIRONMENT "FOMOE_TRAIN=$<TARGET_FILE:fomoe-train>")
add_test(NAME trainer-slow COMMAND test_trainer --test-suite=slow)
set_tests_properties(trainer-slow PROPERTIES LABELS slow TIMEOUT 600)
# Runs the programs as users start them, with several processes, so not beside other tests on few cores.
file(GLOB TRAINER_LIVE_SOURCES CONFIGURE_DEPENDS trainer/live/*.cpp)
add_executable(test_live main.cpp ${TRAINER_LIVE_SOURCES})
target_link_libraries(test_live PRIVATE nlohmann_json::nlohmann_json fomoe_warnings)
target_include_directories(test_live PRIVATE ${PROJECT_SOURCE_DIR} /usr/include/doctest)
target_compile_definitions(test_live PRIVATE FOMOE_SOURCE_DIR="${PROJECT_SOURCE_DIR}" FOMOE_BINARY_DIR="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
add_dependencies(test_live fomoe-train fomoe)
# Long trainings that nothing disturbs, whose end does not depend on when something happens: they may run beside other tests.
set(UNDISTURBED "every core method learns*,processes and one in turn*,each site sends*,a sharded state*,two processes a site train*,with several threads*,two grids share*,sites that share a folder train*,an altered checkpoint*,sites that would resume*,a truncated newest*,a run goes on with other links*,a site with a worker and a server*,sites whose processors*,a training that diverges*,a run that diverges*,a run that is complete*,routing counts of a run*,the report has the norms*,sites validate after*,several connections*,evaluate refuses*,sites with their own files*,sites that share a secret train*,--seeds*,parts of a site's batch*,a run goes on at fewer*")
add_test(NAME live-undisturbed COMMAND test_live "--test-case=${UNDISTURBED}")
set_tests_properties(live-undisturbed PROPERTIES LABELS live TIMEOUT 1200 COST 220)
add_test(NAME live COMMAND test_live "--test-case-exclude=${UNDISTURBED}")
set_tests_properties(live PROPERTIES LABELS live TIMEOUT 1200 RUN_SERIAL TRUE)
# Runs the job scripts of experiments/slurm on a Slurm cluster of this machine alone; skipped if Slurm is not
# installed.
add_test(NAME slurm COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/slurm/slurm_test.sh ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
set_tests_properties(slurm PROPERTIES LABELS "slow;slurm" TIMEOUT 600 RUN_SERIAL TRUE SKIP_RETURN_CODE 77)
if(FOMOE_CUDA)
  add_test(NAME gpu COMMAND test_gpu)
  set_tests_properties(gpu PROPERTIES LABELS gpu TIMEOUT 300 SKIP_RETURN_CODE 77)
endif()
