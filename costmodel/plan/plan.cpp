#include "costmodel/plan/plan.hpp"

namespace fomoe::costmodel {

std::int64_t Exchange::bytes() const {
  std::int64_t sum = 0;
  for (const Payload& payload : payloads) sum += payload.bytes();
  return sum;
}

std::int64_t chunk_elements(std::int64_t elements, int chunks, int chunk) {
  return elements / chunks + (chunk < elements % chunks ? 1 : 0);
}

std::int64_t chunk_bytes(const Exchange& exchange, int chunks, int chunk) {
  std::int64_t sum = 0;
  for (const Payload& payload : exchange.payloads) {
    sum += payload.format.bytes(chunk_elements(payload.elements, chunks, chunk));
  }
  return sum;
}

}  // namespace fomoe::costmodel
