// Includes the parts of LibTorch that the trainer uses: tensors, operators and custom autograd functions.
// <torch/torch.h>, with modules, optimisers and data loaders, takes twice as long to compile. This file is
// the precompiled header.
#pragma once
#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>
