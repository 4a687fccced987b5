#include "trainer/comm/site_ranks.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <stdexcept>

#include "trainer/comm/plain_reason.hpp"
#include "trainer/comm/rank_transports.hpp"
#include "trainer/comm/staging.hpp"
#include "trainer/optimizer/adamw.hpp"

namespace fomoe::trainer {

SitePlace site_place(int rank, const std::vector<int>& counts) {
  int site = 0;
  for (; site < static_cast<int>(counts.size()); ++site) {
    const int ranks = counts[static_cast<std::size_t>(site)];
    if (rank < ranks) return {site, rank, ranks};
    rank -= ranks;
  }
  throw std::logic_error("more processes than the sites have");
}

std::pair<std::int64_t, std::int64_t> part_of_rank(std::int64_t sequences, int rank, int ranks) {
  const auto begin = [&](int of) { return sequences * of / ranks; };
  return {begin(rank), begin(rank + 1) - begin(rank)};
}

SiteRanks::SiteRanks(SitePlace place, std::string site, c10::intrusive_ptr<c10d::Backend> messages,
                     c10::intrusive_ptr<c10d::Backend> sums)
    : place_(place), site_(std::move(site)), messages_(std::move(messages)), sums_(std::move(sums)) {}

void SiteRanks::lost(const std::exception& error) const {
  throw SiteLost("a process of " + site_ + " is lost: " + plain_reason(error));
}

// One collective for each element type, since many small ones would be slow.
void SiteRanks::add_up(const std::vector<at::Tensor>& tensors) {
  const at::NoGradGuard no_grad;
  std::vector<at::ScalarType> types;
  for (const at::Tensor& tensor : tensors) {
    if (std::find(types.begin(), types.end(), tensor.scalar_type()) == types.end())
      types.push_back(tensor.scalar_type());
  }
  for (const at::ScalarType type : types) {
    std::vector<at::Tensor> flat;
    for (const at::Tensor& tensor : tensors) {
      if (tensor.scalar_type() == type) flat.push_back(tensor.reshape({-1}));
    }
    std::vector<at::Tensor> buffer = {at::cat(flat)};
    try {
      sums_->allreduce(buffer)->wait();
    } catch (const std::exception& error) {
      lost(error);
    }
    std::int64_t at = 0;
    for (const at::Tensor& tensor : tensors) {
      if (tensor.scalar_type() != type) continue;
      tensor.copy_(buffer[0].narrow(0, at, tensor.numel()).view_as(tensor));
      at += tensor.numel();
    }
  }
}

// One message for each process, since many small ones would be slow. All tensors have the same type.
void SiteRanks::share_rows(const std::vector<at::Tensor>& tensors) {
  const at::NoGradGuard no_grad;
  for (int owner = 0; owner < place_.ranks; ++owner) {
    std::vector<at::Tensor> rows, flat;
    for (const at::Tensor& tensor : tensors) {
      rows.push_back(rows_of_shard(tensor, owner, place_.ranks).of(tensor));
      flat.push_back(rows.back().reshape({-1}));
    }
    std::vector<at::Tensor> buffer = {at::cat(flat)};
    c10d::BroadcastOptions options;
    options.rootRank = owner;
    try {
      sums_->broadcast(buffer, options)->wait();
    } catch (const std::exception& error) {
      lost(error);
    }
    if (owner == place_.rank) continue;
    std::int64_t at = 0;
    for (at::Tensor& into : rows) {
      into.copy_(buffer[0].narrow(0, at, into.numel()).view_as(into));
      at += into.numel();
    }
  }
}

bool SiteRanks::agree_on(const std::string& text) {
  constexpr int kTag = std::numeric_limits<int>::max();  // no message between sites has it
  const auto own = static_cast<std::int64_t>(std::hash<std::string>()(text));
  at::Tensor first = at::full({1}, own, at::kLong);
  at::Tensor bytes = first.view(at::kByte);
  pass_on(bytes, kTag);
  at::Tensor differ = at::full({1}, first.item<std::int64_t>() == own ? 0 : 1, at::kLong);
  std::vector<at::Tensor> sum = {differ};
  try {
    messages_->allreduce(sum)->wait();
  } catch (const std::exception& error) {
    lost(error);
  }
  return differ.item<std::int64_t>() == 0;
}

void SiteRanks::pass_on(at::Tensor& bytes, int tag) {
  std::vector<c10::intrusive_ptr<c10d::Work>> pending;
  std::vector<at::Tensor> buffer = {bytes};
  try {
    {
      const std::lock_guard posting(posting_);
      if (place_.rank > 0) pending.push_back(messages_->recv(buffer, 0, tag));
      for (int other = 1; place_.rank == 0 && other < place_.ranks; ++other)
        pending.push_back(messages_->send(buffer, other, tag));
    }
    for (const auto& work : pending) work->wait();
  } catch (const std::exception& error) {
    lost(error);
  }
}

namespace {

class SiteTransport : public Transport {
 public:
  SiteTransport(const std::vector<costmodel::Node>& nodes, std::unique_ptr<Transport> across,
                SiteRanks& ranks, bool concurrent)
      : Transport(nodes, nodes_of_site(nodes, ranks.place().site, ranks.place().hosts_store)),
        across_(std::move(across)),
        ranks_(ranks),
        concurrent_(concurrent) {
    std::vector<int> seen(nodes.size(), 0);
    for (const costmodel::Node& node : nodes)
      place_.push_back(seen.at(static_cast<std::size_t>(node.site))++);
  }

  [[nodiscard]] bool concurrent() const override { return concurrent_; }
  void use_store(std::shared_ptr<ObjectStore> store) override {
    if (across_) across_->use_store(std::move(store));
  }
  void begin_round(std::int64_t index) override {
    if (across_) across_->begin_round(index);
  }

 protected:
  void post(const std::vector<Message*>& messages, int channel) override {
    if (!across_) return;
    std::vector<Message> copies;
    for (const Message* message : messages) copies.push_back(*message);
    across_->expect(copies, channel);
    for (std::size_t m = 0; m < messages.size(); ++m) *messages[m] = copies[m];
  }

  void move(const std::vector<Message*>& messages, int channel) override {
    if (across_) {
      std::vector<Message> copies;
      for (const Message* message : messages) copies.push_back(*message);
      across_->exchange(copies, channel);
      for (std::size_t m = 0; m < messages.size(); ++m) messages[m]->received = copies[m].received;
    }
    for (Message* message : messages) {
      if (!hosts(message->to)) continue;
      message->received =
          across_ ? on_host(message->received) : host_buffer(message->bytes(), message->used_on);
      const int senders = static_cast<int>(nodes().size());
      ranks_.pass_on(message->received,
                     (channel * senders + message->from) * 2 + place_[static_cast<std::size_t>(message->to)]);
    }
  }

 private:
  std::unique_ptr<Transport> across_;
  SiteRanks& ranks_;
  bool concurrent_;
  std::vector<int> place_;  // index of each node within its site: a worker and perhaps a server
};

}  // namespace

std::unique_ptr<Transport> site_transport(const std::vector<costmodel::Node>& nodes,
                                          std::unique_ptr<Transport> across, SiteRanks& ranks,
                                          bool concurrent) {
  return std::make_unique<SiteTransport>(nodes, std::move(across), ranks, concurrent);
}

}  // namespace fomoe::trainer
