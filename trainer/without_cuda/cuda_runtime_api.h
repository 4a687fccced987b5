// In the place of CUDA's header of this name in a build without CUDA: what declarations of launches name.
#pragma once
using cudaStream_t = struct CUstream_st*;
enum cudaError_t : int;
