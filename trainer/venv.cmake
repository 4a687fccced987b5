# LibTorch, the CUDA libraries and nvcc all come from Python wheels in a virtual environment, which
# tools/setup.sh makes. CMake and TorchConfig do not look into a virtual environment by themselves, so this
# file tells both where they are.
set(FOMOE_VENV "${PROJECT_SOURCE_DIR}/.venv" CACHE PATH "Virtual environment with the torch wheel, and with FOMOE_CUDA the cuda-toolkit wheels")

file(GLOB FOMOE_TORCH_DIR "${FOMOE_VENV}/lib/python3.*/site-packages/torch")
file(GLOB FOMOE_CUDA_DIR "${FOMOE_VENV}/lib/python3.*/site-packages/nvidia/cu13")
if(NOT FOMOE_TORCH_DIR OR NOT FOMOE_CUDA_DIR)
  message(FATAL_ERROR "fomoe-train needs LibTorch, but ${FOMOE_VENV} does not contain it. Run bash tools/setup.sh, or "
                      "bash tools/setup.sh cpu for a build with -DFOMOE_CUDA=OFF. To build without fomoe-train, pass "
                      "-DFOMOE_TRAINER=OFF.")
endif()
list(GET FOMOE_TORCH_DIR 0 FOMOE_TORCH_DIR)
list(GET FOMOE_CUDA_DIR 0 FOMOE_CUDA_DIR)
if(NOT FOMOE_CUDA)
  return()
endif()
if(NOT EXISTS "${FOMOE_CUDA_DIR}/bin/nvcc")
  message(FATAL_ERROR "FOMOE_CUDA=ON needs nvcc, but ${FOMOE_VENV} does not contain it. Run bash tools/setup.sh. To build "
                      "fomoe-train for the CPU only, pass -DFOMOE_CUDA=OFF.")
endif()

set(CMAKE_CUDA_COMPILER "${FOMOE_CUDA_DIR}/bin/nvcc" CACHE FILEPATH "CUDA compiler")
set(CUDAToolkit_ROOT "${FOMOE_CUDA_DIR}")
set(CUDA_TOOLKIT_ROOT_DIR "${FOMOE_CUDA_DIR}" CACHE PATH "CUDA toolkit")
set(CMAKE_CUDA_ARCHITECTURES 90 CACHE STRING "CUDA architectures of fomoe-train's own kernels")
# TorchConfig ignores the line above. Without the following line it looks for a GPU, which this machine need
# not have.
set(TORCH_CUDA_ARCH_LIST "9.0" CACHE STRING "CUDA architectures that TorchConfig passes to nvcc")
# CMake 3.25 (Debian 12) does not support CUDA C++20 with nvcc 13, so kernels are C++17.
set(CMAKE_CUDA_STANDARD 17)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
