#include "trainer/rendezvous/rendezvous.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "platforms/support/input_error.hpp"
#include "trainer/comm/plain_reason.hpp"
#include "trainer/comm/rank_transports.hpp"
#include "trainer/rendezvous/connection.hpp"
#include "trainer/rendezvous/own_address.hpp"
#include "trainer/rendezvous/waiting_notice.hpp"
#include "trainer/sockets/keepalive.hpp"

namespace fomoe::trainer {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr std::size_t kPieceBytes = 1 << 20;  // the store takes values of up to 8 MiB

}  // namespace

std::string Rendezvous::name_of(int rank) const {
  return names_.at(static_cast<std::size_t>(rank)) + " (rank " + std::to_string(rank) + ")";
}

Rendezvous::~Rendezvous() = default;

SiteLost Rendezvous::store_lost() const {
  return SiteLost(name_of(0) + " is lost; it hosted the store through which the sites find each other");
}

std::vector<std::string> Rendezvous::gather(const std::string& key, const std::string& text) {
  return exchange_texts(key, text, /*all_read=*/true, timeout_s_);
}

std::vector<std::string> Rendezvous::collect(const std::string& key, const std::string& text) {
  return exchange_texts(key, text, /*all_read=*/false, timeout_s_);
}

namespace {
std::string piece_key(const std::string& key, std::size_t piece) { return key + "/" + std::to_string(piece); }
}  // namespace

// A text is stored in pieces, since the store limits the size of a value. The value at the key itself is the
// number of pieces; it is written last.
void Rendezvous::store_text(const std::string& key, const std::string& text) {
  std::size_t pieces = 0;
  for (std::size_t begin = 0; begin < text.size(); begin += kPieceBytes)
    connection_->store->set(piece_key(key, pieces++), bytes_of(text.substr(begin, kPieceBytes)));
  connection_->store->set(key, bytes_of(std::to_string(pieces)));
}

std::string Rendezvous::stored_text(const std::string& key, bool remove) {
  std::string text;
  const std::size_t pieces = std::stoul(text_of(connection_->store->get(key)));
  for (std::size_t piece = 0; piece < pieces; ++piece) {
    text += text_of(connection_->store->get(piece_key(key, piece)));
    if (remove) connection_->store->deleteKey(piece_key(key, piece));
  }
  return text;
}

std::vector<std::string> Rendezvous::keys_of_ranks(const std::string& key) const {
  std::vector<std::string> keys;
  for (int rank = 0; rank < launch_.world; ++rank) keys.push_back(key + "/" + std::to_string(rank));
  return keys;
}

void Rendezvous::note(const std::string& key, const std::string& text) {
  try {
    connection_->store->set(key, bytes_of(text));
  } catch (const std::exception&) {
    throw store_lost();
  }
}

std::string Rendezvous::note_first(const std::string& key, const std::string& text) {
  try {
    return text_of(connection_->store->compareSet(key, {}, bytes_of(text)));
  } catch (const std::exception&) {
    throw store_lost();
  }
}

std::optional<std::string> Rendezvous::noted(const std::string& key) {
  try {
    if (!connection_->store->check({key})) return std::nullopt;
    return text_of(connection_->store->get(key));
  } catch (const std::exception&) {
    throw store_lost();
  }
}

void Rendezvous::post(const std::string& key, const std::string& text) {
  try {
    store_text(keys_of_ranks(key)[static_cast<std::size_t>(launch_.rank)], text);
  } catch (const std::exception&) {
    throw store_lost();
  }
}

std::optional<std::vector<std::string>> Rendezvous::posted(const std::string& key, bool wait) {
  if (launch_.rank > 0) return std::vector<std::string>();
  const std::vector<std::string> keys = keys_of_ranks(key);
  if (wait) wait_for(keys, timeout_s_);
  std::vector<std::string> texts(keys.size());
  try {
    for (const int member : members_) {
      if (!connection_->store->check({keys[static_cast<std::size_t>(member)]})) return std::nullopt;
    }
    for (const int member : members_) {
      const std::string& own = keys[static_cast<std::size_t>(member)];
      texts[static_cast<std::size_t>(member)] = stored_text(own, /*remove=*/true);
      connection_->store->deleteKey(own);
    }
  } catch (const std::exception&) {
    throw store_lost();
  }
  return texts;
}

std::vector<std::string> Rendezvous::exchange_texts(const std::string& key, const std::string& text,
                                                    bool all_read, double timeout_s) {
  const std::vector<std::string> keys = keys_of_ranks(key);
  std::vector<std::string> texts;
  try {
    store_text(keys[static_cast<std::size_t>(launch_.rank)], text);
  } catch (const std::exception&) {
    throw store_lost();
  }
  const bool reads = all_read || launch_.rank == 0;
  if (reads) {
    wait_for(keys, timeout_s);
    texts.resize(keys.size());
  }
  try {
    for (const int member : members_) {
      if (!reads) break;
      const auto rank = static_cast<std::size_t>(member);
      texts[rank] = stored_text(keys[rank], /*remove=*/!all_read);
    }
    // Rank 0 serves the store, so it leaves last. A rank that has written its text may have been lost before
    // it has read the others', and may have come back since.
    if (launch_.rank > 0) connection_->store->add(key + "/done", 1);
    const auto deadline = steady_clock::now() + milliseconds_of(timeout_s_);
    while (launch_.rank == 0 && connection_->store->add(key + "/done", 0) < std::ssize(members_) - 1 &&
           steady_clock::now() < deadline) {
      throw_if_asked_to_start_anew();
      std::this_thread::sleep_for(milliseconds(2));
    }
  } catch (const SiteLost&) {
    throw;
  } catch (const std::exception&) {
    throw store_lost();
  }
  return texts;
}

// Waits for the members' keys in short turns, between which it looks for a request to start anew. `keys` is
// indexed by rank.
void Rendezvous::wait_for(const std::vector<std::string>& keys, double timeout_s,
                          const std::function<std::string()>& whom) {
  std::vector<std::string> wanted;
  for (const int rank : members_) wanted.push_back(keys[static_cast<std::size_t>(rank)]);
  const auto deadline = steady_clock::now() + milliseconds_of(timeout_s);
  WaitingNotice notice;
  while (true) {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now());
    try {
      connection_->store->wait(wanted, std::clamp(left, milliseconds(1), milliseconds(1000)));
      return;
    } catch (const std::exception&) {
      if (steady_clock::now() >= deadline) throw missing_of(keys, timeout_s);
    }
    throw_if_asked_to_start_anew();
    notice.waits(timeout_s, [&] { return whom ? whom() : names_of_missing(keys); });
  }
}

std::string Rendezvous::names_of_missing(const std::vector<std::string>& keys) {
  std::string missing;
  for (const int rank : members_) {
    bool there = false;
    try {
      there = connection_->store->check({keys[static_cast<std::size_t>(rank)]});
    } catch (const std::exception&) {
      throw store_lost();
    }
    if (!there) missing += (missing.empty() ? "" : ", ") + name_of(rank);
  }
  return missing;
}

SiteLost Rendezvous::missing_of(const std::vector<std::string>& keys, double timeout_s) {
  std::string missing;
  try {
    missing = names_of_missing(keys);
  } catch (const SiteLost& lost) {
    return lost;
  }
  if (missing.empty()) missing = "at least one site";  // the ranks arrived after the timeout
  return SiteLost(missing + " did not respond within " + std::to_string(static_cast<int>(timeout_s)) + " s");
}

// A run that may lose sites has one process a site. Any other has all sites.
std::vector<int> Rendezvous::ranks_of_sites(std::size_t sites) const {
  std::vector<int> ranks(sites, -1);
  if (std::ssize(members_) == launch_.world) {
    std::iota(ranks.begin(), ranks.end(), 0);
    return ranks;
  }
  for (std::size_t i = 0; i < members_.size(); ++i)
    ranks[static_cast<std::size_t>(members_[i])] = static_cast<int>(i);
  return ranks;
}

SiteLinks Rendezvous::links(const std::vector<costmodel::Node>& nodes, const at::Device& device,
                            const std::string& kind, const std::vector<std::string>& sites,
                            const SitePlace& place, int streams) {
  std::vector<std::string> devices = gather("device", device_identity(device));
  std::erase(devices, "");  // of ranks that take no part
  RankTransportOptions options;
  options.nodes = nodes;
  options.site = place.site;
  options.hosts_store = place.hosts_store;
  options.rank_of_site = ranks_of_sites(sites.size());
  for (std::size_t site = 0; site < sites.size(); ++site) {
    if (options.rank_of_site[site] >= 0) options.names.push_back(sites[site]);
  }
  options.rank = options.rank_of_site[static_cast<std::size_t>(place.site)];
  options.timeout_s = timeout_s_;
  options.device = device;
  options.streams = streams;
  const bool possible = own_gpu_each(devices);
  if (kind == "nccl" && !possible) {
    throw UsageError(
        "trainer.transport: got nccl, but not every site has a GPU of its own; expected gloo or auto; for "
        "example --set trainer.transport=gloo");
  }
  const bool nccl = possible && kind != "gloo";
  const std::string address = own_address(launch_);
  SiteLinks links;
  try {
    options.store = c10::make_intrusive<c10d::PrefixStore>(nccl ? "nccl" : "gloo", connection_->store);
    if (place.rank == 0) links.transport = nccl ? nccl_transport(options) : gloo_transport(options, address);
    keep_connections_alive();
    if (place.ranks == 1) return links;
    const std::string& site = sites[static_cast<std::size_t>(place.site)];
    RankTransportOptions inside = options;
    inside.names.assign(static_cast<std::size_t>(place.ranks), site);
    inside.rank = place.rank;
    const auto store = [&](const char* of) {
      return c10::make_intrusive<c10d::PrefixStore>("site " + std::to_string(place.site) + " " + of,
                                                    connection_->store);
    };
    inside.store = store("messages");
    const c10::intrusive_ptr<c10d::Backend> messages = gloo_backend(inside, address);
    c10::intrusive_ptr<c10d::Backend> sums = messages;
    if (possible) {
      inside.store = store("sums");
      sums = nccl_backend(inside);
    }
    links.ranks = std::make_unique<SiteRanks>(place, site, messages, sums);
    links.transport = site_transport(nodes, std::move(links.transport), *links.ranks, !nccl);
    keep_connections_alive();
    return links;
  } catch (const std::exception& error) {
    throw SiteLost("the sites cannot connect to each other: " + plain_reason(error));
  }
}

std::string Rendezvous::first_failure(const std::string& own) {
  try {
    // The first rank that fails writes the reason, and the others read it. With an empty expected value,
    // compareSet writes only if the key does not exist.
    const std::string first = text_of(connection_->store->compareSet("failure", {}, bytes_of(own)));
    // Rank 0 keeps the store open a little longer, for ranks that have yet to ask.
    if (launch_.rank == 0 && !launch_.agent_store) std::this_thread::sleep_for(std::chrono::seconds(2));
    return first;
  } catch (const std::exception&) {
    return store_lost().what();
  }
}

}  // namespace fomoe::trainer
