// A plan's Transfer over a transport: every pattern as phases of point-to-point messages, so that no process
// group is needed for any set of nodes. All exchanges of a transfer go through the same phases, and what one
// node sends another in a phase is one message.
//
// Cut into pieces (strategy.granularity, strategy.bucket_bytes), each piece is a call of the collective by
// itself and the calls follow each other, as in the simulator. Every element goes through the same sums in
// direct exchange, so that plain formats (fp32, bf16, fp16, fp8) give the bits of the flat buffer. A ring
// sums in an order that depends on the chunk, and integers and top-k share scales and budgets within a piece:
// their last bits are those of the pieces.
//
// Chunks, partners and their order are the plan's (chunk_elements, costmodel/plan/collective_steps.hpp). Sums
// are taken in fp32 (fp64 for fp64 values). Under direct exchange they are taken in the order of the
// exchange's nodes from values as they come off the wire, the own ones included, so that the result does not
// depend on who adds.
//
// A hierarchical all-reduce is three transfers of the plan: a reduce-scatter inside each region, all-reduces
// of a chunk between regions, and an all-gather inside. What a node has between them is no tensor of a model:
// it waits in PartialMeans. A mean of means is the mean, since regions are equally large.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "costmodel/plan/pieces.hpp"
#include "costmodel/plan/plan.hpp"
#include "trainer/comm/transport.hpp"
#include "trainer/torch.hpp"

namespace fomoe::trainer {

class PatternRun;
class Phase;

/// A payload at one of the nodes of its exchange.
struct PayloadAt {
  const costmodel::Exchange& exchange;
  const costmodel::Payload& payload;
  costmodel::NodeId node;
};

/// What the node sends: flat [elements].
using PayloadSource = std::function<at::Tensor(const PayloadAt&)>;
/// What the node has afterwards: flat [elements]
///   all_reduce, all_to_all_broadcast   the mean over the exchange's nodes, the same bits at each
///   all_gather                         all chunks
///   reduce                             the mean over nodes[1] …, at nodes[0]
///   broadcast, point_to_point          what nodes[0] sent, at the others
using PayloadSink = std::function<void(const PayloadAt&, const at::Tensor&)>;
/// Called with what a node contributed and what others read of it, where a codec loses something.
using LossSink = std::function<void(const PayloadAt&, const at::Tensor& sent, const at::Tensor& read)>;

/// Chunks of means on their way through a hierarchical all-reduce. May be used from several threads at once.
class PartialMeans {
 public:
  /// Of which round, whose, and of what.
  using Key =
      std::tuple<std::int64_t, costmodel::NodeId, costmodel::Content, std::vector<costmodel::GroupId>>;
  void put(Key key, at::Tensor chunk);
  /// Throws std::logic_error where there is none.
  at::Tensor take(const Key& key);

 private:
  std::mutex mutex_;
  std::map<Key, at::Tensor> chunks_;
};

/// Whether the payload of such a transfer is read from, or ends in, PartialMeans instead of a model.
bool from_partial(const costmodel::Transfer& transfer, const costmodel::Payload& payload);
bool to_partial(const costmodel::Transfer& transfer, const costmodel::Payload& payload);

struct TransferOptions {
  bool exact_wire = false;  // see WireCodec
  LossSink lost = {};
  costmodel::Pieces pieces = {};    // of payloads, each a call; none: one call sends everything
  int channel = 0;                  // see Transport::exchange
  PartialMeans* partial = nullptr;  // of transfers that read or leave chunks
  std::int64_t round = 0;           // that these are of
};

/// A transfer in parts: it may be expected long before there is anything to send, and exchange(), which does
/// all the waiting, may run beside training. `transfer` and `transport` must outlive it.
class TransferRun {
 public:
  /// Throws std::invalid_argument for a pattern or wire format that this does not do.
  TransferRun(const costmodel::Transfer& transfer, Transport& transport, const TransferOptions& options = {});
  ~TransferRun();
  TransferRun(const TransferRun&) = delete;
  TransferRun& operator=(const TransferRun&) = delete;

  /// Posts the receives of the first phase; those of each later one are posted as the one before begins.
  void expect();
  /// What the models send.
  void read(const PayloadSource& source);
  /// Chunks of earlier transfers are taken when it starts, and left when it ends.
  void exchange();
  void deliver(const PayloadSink& sink);

 private:
  struct Cut;
  using AtNode = std::function<void(Cut&, int position, const PayloadAt&)>;
  void at_hosted(const AtNode& visit);
  [[nodiscard]] PartialMeans::Key key(const PayloadAt& at) const;
  struct Step {
    std::vector<PatternRun*> runs;
    int phase = 0;
  };
  [[nodiscard]] std::unique_ptr<Phase> laid_out(const Step& step) const;

  Transport* transport_;
  TransferOptions options_;
  std::vector<std::unique_ptr<Cut>> cuts_;
  std::vector<Step> steps_;  // the phases of one call after those of another
  std::unique_ptr<Phase> first_;
};

/// What is read of a payload that is sent as it is (broadcast, point_to_point).
at::Tensor as_read(const costmodel::Payload& payload, const at::Tensor& flat, const TransferOptions& options);

/// All at once.
void run_transfer(const costmodel::Transfer& transfer, Transport& transport, const PayloadSource& source,
                  const PayloadSink& sink, const TransferOptions& options = {});

}  // namespace fomoe::trainer
