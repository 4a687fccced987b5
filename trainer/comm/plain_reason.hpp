// What LibTorch's and Gloo's exceptions say, for messages to users.
#pragma once
#include <exception>
#include <string>

namespace fomoe::trainer {

/// The first line of the exception's text, without the places in the sources of LibTorch, Gloo or NCCL at
/// which it was thrown: "Connection closed by peer [10.0.0.1]:4321" of "[…/gloo/transport/tcp/pair.cc:547]
/// Connection closed by peer [10.0.0.1]:4321".
std::string plain_reason(const std::exception& error);

}  // namespace fomoe::trainer
