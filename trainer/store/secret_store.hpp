// The store of a run whose sites share a secret, as LibTorch's c10d::Store. LibTorch's own TCPStore serves
// anyone.
#pragma once
#include <chrono>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "trainer/store/reaching.hpp"

namespace fomoe::trainer {

struct SecretStoreOptions {
  std::string address;  // of rank 0
  int port = 0;
  bool server = false;    // this process is rank 0
  std::string listen_on;  // rank 0: the address to listen on; empty: all addresses
  std::string secret;
  std::chrono::milliseconds timeout{0};  // for keys that do not exist yet, and for answers
  Patience patience = {};                // with which a process waits for rank 0; none: the time-out
};

/// Opens the store at rank 0, and connects to it elsewhere, as soon as rank 0 is there. Throws NotAuthentic
/// if rank 0 does not know the secret or says that this process does not; ConnectionLost if rank 0 does not
/// answer in time; std::runtime_error if rank 0 cannot listen. Rank 0 prints who was refused on stderr.
c10::intrusive_ptr<c10d::Store> secret_store(const SecretStoreOptions& options);

}  // namespace fomoe::trainer
