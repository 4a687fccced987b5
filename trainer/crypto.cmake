# Sets FOMOE_CRYPTO to OpenSSL's libcrypto. The static library is preferred, because the binary is carried to machines without
# OpenSSL. Debian 13's cannot be linked alone, since it calls libraries that its package does not install.
include(CheckCXXSourceCompiles)
find_library(FOMOE_CRYPTO_STATIC NAMES libcrypto.a)
if(FOMOE_CRYPTO_STATIC)
  set(CMAKE_REQUIRED_LIBRARIES ${FOMOE_CRYPTO_STATIC})
  check_cxx_source_compiles("
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
int main() {
  unsigned char bytes[64];
  unsigned int size = 0;
  return RAND_bytes(bytes, 32) == 1 && HMAC(EVP_sha256(), bytes, 32, bytes, 32, bytes, &size) != nullptr ? 0 : 1;
}" FOMOE_CRYPTO_LINKS_STATICALLY)
  unset(CMAKE_REQUIRED_LIBRARIES)
endif()
find_library(FOMOE_CRYPTO_SHARED NAMES crypto)
if(FOMOE_CRYPTO_LINKS_STATICALLY)
  set(FOMOE_CRYPTO ${FOMOE_CRYPTO_STATIC})
elseif(FOMOE_CRYPTO_SHARED)
  set(FOMOE_CRYPTO ${FOMOE_CRYPTO_SHARED})
else()
  message(FATAL_ERROR "OpenSSL's libcrypto is missing; on Debian: apt-get install libssl-dev")
endif()
