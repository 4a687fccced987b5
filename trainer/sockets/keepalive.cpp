#include "trainer/sockets/keepalive.hpp"

#include <dirent.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cstdlib>
#include <memory>

namespace fomoe::trainer {
namespace {

// LibTorch's Gloo tells nobody its sockets, so the process looks at all of its file descriptors.
bool is_tcp_connection(int file) {
  int type = 0;
  socklen_t length = sizeof type;
  if (::getsockopt(file, SOL_SOCKET, SO_TYPE, &type, &length) != 0 || type != SOCK_STREAM) return false;
  sockaddr_storage peer{};
  length = sizeof peer;
  if (::getpeername(file, reinterpret_cast<sockaddr*>(&peer), &length) != 0) return false;
  return peer.ss_family == AF_INET || peer.ss_family == AF_INET6;
}

bool set(int file, int level, int option, int value) {
  return ::setsockopt(file, level, option, &value, sizeof value) == 0;
}

}  // namespace

int keep_connections_alive(const Keepalive& how) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc/self/fd"), ::closedir);
  if (!folder) return 0;
  int count = 0;
  while (const dirent* entry = ::readdir(folder.get())) {
    if (entry->d_name[0] == '.') continue;
    const int file = std::atoi(entry->d_name);
    int on = 0;
    socklen_t length = sizeof on;
    if (!is_tcp_connection(file) || ::getsockopt(file, SOL_SOCKET, SO_KEEPALIVE, &on, &length) != 0 ||
        on != 0)
      continue;
    if (set(file, IPPROTO_TCP, TCP_KEEPIDLE, how.idle_s) &&
        set(file, IPPROTO_TCP, TCP_KEEPINTVL, how.interval_s) &&
        set(file, IPPROTO_TCP, TCP_KEEPCNT, how.probes) && set(file, SOL_SOCKET, SO_KEEPALIVE, 1))
      ++count;
  }
  return count;
}

}  // namespace fomoe::trainer
