# LibTorch for the CPU alone, out of the torch wheel that is for CUDA as well. Its own TorchConfig.cmake demands a whole
# CUDA toolkit, so the target is made here. libtorch_cpu.so needs libcudart and libcupti, both of which are small wheels,
# and finds them by its own RPATH; nothing else of NVIDIA's is loaded.
set(TORCH_INCLUDE_DIRS "${FOMOE_TORCH_DIR}/include" "${FOMOE_TORCH_DIR}/include/torch/csrc/api/include")
add_library(torch INTERFACE IMPORTED GLOBAL)
target_link_libraries(torch INTERFACE "${FOMOE_TORCH_DIR}/lib/libtorch_cpu.so" "${FOMOE_TORCH_DIR}/lib/libc10.so")
target_link_options(torch INTERFACE "-Wl,-rpath-link,${FOMOE_CUDA_DIR}/lib:${FOMOE_TORCH_DIR}/lib")
# As Caffe2Targets.cmake defines them.
target_compile_definitions(torch INTERFACE USE_DISTRIBUTED USE_C10D_GLOO USE_RPC USE_TENSORPIPE)
