// How the processes of a run find each other: through a TCPStore at rank 0.
//
// Ranks that start early wait for the others, for at most Launch::start_timeout_s, and say for whom
// (waiting_notice.hpp). Before training starts, all ranks check that they are about to
// train the same thing. If the run may go on without lost sites, rank 0 decides who takes part (meeting.cpp).
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/comm/digest.hpp"
#include "trainer/comm/site_ranks.hpp"
#include "trainer/comm/transport.hpp"
#include "trainer/rendezvous/launch.hpp"
#include "trainer/store/reaching.hpp"

namespace fomoe::trainer {

/// What connects a process to the other processes of its site and to other sites.
struct SiteLinks {
  std::unique_ptr<SiteRanks> ranks;  // null if the site has one process
  std::unique_ptr<Transport> transport;
};

/// What a run does about lost sites, if it does not stop.
struct LostSites {
  double meeting_s = 0;  // time for which agree() waits for sites that come back
  /// Time after which agree() goes on without the sites that are not there; rank 0's counts. Empty: it never
  /// does.
  std::optional<double> drop_after_s = {};
  /// By rank, if drop_after_s is set: whether agree() waits for it in any case. It always waits for rank 0.
  std::vector<bool> needed = {};
};

class Rendezvous {
 public:
  /// Connects to the store, which rank 0 opens. `names` are the names of the processes, by rank. Throws
  /// UsageError if the port is in use or another process has the same rank, and SiteLost if rank 0 does not
  /// appear within Launch::start_timeout_s, or if somebody listens in its place who says
  /// nothing for `timeout_s`.
  ///
  /// With `lost`, sites may have been lost, and come back: agree() waits for them. Rank 0 may not have
  /// noticed yet that an earlier process of this rank has ended. The constructor then tells all ranks in
  /// gather() to start anew, which throws SiteLost there, and waits for rank 0's next store.
  Rendezvous(const Launch& launch, std::vector<std::string> names, double timeout_s,
             std::optional<LostSites> lost = std::nullopt);
  ~Rendezvous();

  /// Waits until every rank has called agree(), compares the digests, and measures each rank's round trip to
  /// rank 0. If digests differ, it throws UsageError, which names the first rank that differs and the entry
  /// that differs. If ranks are missing, it throws SiteLost, which names them.
  ///
  /// With LostSites::drop_after_s, it goes on with the ranks that are there. A rank that comes too late asks
  /// rank 0 to start anew, waits until it does, and throws SiteLost.
  void agree(const Digest& digest);

  /// The ranks that take part, ascending; after agree().
  [[nodiscard]] const std::vector<int>& members() const { return members_; }
  /// At rank 0: what asked all ranks to start anew, for instance a site that has come back; empty if nothing
  /// did. It asks only this process's own store, so it takes no time.
  [[nodiscard]] std::string asked_to_start_anew();

  /// Waits until every member has called gather() with the same `key`, and returns their texts, by rank.
  /// Ranks that take no part have empty texts. Each call needs a new `key`. Texts may have any length.
  std::vector<std::string> gather(const std::string& key, const std::string& text);
  /// Does the same at rank 0. The other ranks get an empty list, and rank 0 keeps only the texts.
  std::vector<std::string> collect(const std::string& key, const std::string& text);

  /// Stores a text that every rank may read, at any time and from any thread.
  void note(const std::string& key, const std::string& text);
  /// Does so unless a rank has done it before. Returns the text of the first.
  std::string note_first(const std::string& key, const std::string& text);
  /// The text that a rank has stored; empty if none has.
  [[nodiscard]] std::optional<std::string> noted(const std::string& key);
  /// The name of this rank in messages.
  [[nodiscard]] std::string own_name() const { return name_of(launch_.rank); }

  /// Stores a text for rank 0, which reads it with posted(). Does not wait for anybody.
  void post(const std::string& key, const std::string& text);
  /// At rank 0: the texts that all members have posted under `key`, by rank, which are then removed from the
  /// store. Nothing if a member has not posted its text yet, unless `wait` says to wait for it. The other
  /// ranks get an empty list.
  std::optional<std::vector<std::string>> posted(const std::string& key, bool wait);

  /// Returns at every rank at the same moment, once all ranks have called it; call it after agree(), and only
  /// once. The signal of rank 0 reaches another rank half a round trip later, so each rank waits for half the
  /// difference between the longest round trip and its own. If a path is slower in one direction, the error
  /// is half the difference between the directions. Throws SiteLost as gather() does.
  void start_together();

  /// Makes the transport between the sites (rank_transports.hpp), and the connections inside a site with
  /// several processes. `kind` is a value of trainer.transport: gloo, nccl, or auto, which is NCCL if every
  /// rank trains on a GPU of its own, otherwise Gloo. `sites` are the names of the sites. Throws UsageError
  /// if `kind` is nccl and a rank has no GPU of its own. `streams` is the number of TCP connections between
  /// two sites. The exchange() of the transport throws SiteLost.
  SiteLinks links(const std::vector<costmodel::Node>& nodes, const at::Device& device,
                  const std::string& kind, const std::vector<std::string>& sites, const SitePlace& place,
                  int streams = 1);

  /// Tells the other ranks that this rank stops for the reason `own`, and returns the reason of the rank that
  /// stopped first. A rank that only saw its neighbour leave thus also reports what caused it.
  std::string first_failure(const std::string& own);

 private:
  struct Connection;
  [[nodiscard]] std::string name_of(int rank) const;
  [[nodiscard]] SiteLost store_lost() const;
  void connect();
  void reach_open_store() const;
  [[nodiscard]] Patience patience() const;
  /// The time for which ranks wait for rank 0, and for each other, before the training starts.
  [[nodiscard]] double start_limit_s() const;
  [[nodiscard]] double meeting_limit_s() const;
  [[nodiscard]] std::string names_of_missing(const std::vector<std::string>& keys);
  [[nodiscard]] std::optional<bool> first_of_its_rank();
  void ask_to_start_anew();
  void throw_if_asked_to_start_anew();
  void meet();
  void decide_members();
  std::vector<std::string> exchange_texts(const std::string& key, const std::string& text, bool all_read,
                                          double timeout_s);
  /// `whom` are the names of those whom the process waits for; empty: the ranks whose keys are missing.
  void wait_for(const std::vector<std::string>& keys, double timeout_s,
                const std::function<std::string()>& whom = {});
  void store_text(const std::string& key, const std::string& text);
  [[nodiscard]] std::string stored_text(const std::string& key, bool remove);
  [[nodiscard]] std::vector<std::string> keys_of_ranks(const std::string& key) const;
  /// The error that names the members whose key is missing from the store; `keys` is indexed by rank.
  [[nodiscard]] SiteLost missing_of(const std::vector<std::string>& keys, double timeout_s);
  [[nodiscard]] std::vector<int> ranks_of_sites(std::size_t sites) const;
  void measure_round_trips();

  Launch launch_;
  std::vector<std::string> names_;
  double timeout_s_;
  std::optional<LostSites> lost_;
  std::vector<int> members_;
  double round_trip_s_ = 0, longest_round_trip_s_ = 0;  // seconds, from a rank to the store and back
  std::unique_ptr<Connection> connection_;
};

}  // namespace fomoe::trainer
