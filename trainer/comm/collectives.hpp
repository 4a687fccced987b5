// Runs a Transfer of a plan over a transport. Every pattern becomes phases of point-to-point messages, so
// that an arbitrary set of nodes needs no process group. All exchanges of a transfer go through the same
// phases, and everything that one node sends to another in a phase is one message.
//
// If payloads are cut into pieces (strategy.granularity, strategy.bucket_bytes), each piece is a separate
// call of the collective and the calls follow each other, as in the simulator. Under direct exchange, cutting
// does not change the order of the sums, so that plain formats (fp32, bf16, fp16, fp8) give the same bits as
// the flat buffer. A ring sums in an order that depends on the chunk, and integer formats and top-k share
// scales and budgets within a piece: there the last bits depend on how the payload is cut.
//
// Chunks, partners and their order are those of the plan (chunk_elements,
// costmodel/plan/collective_steps.hpp). Sums are taken in fp32 (in fp64 for fp64 values). Under direct
// exchange a node adds the values as they are read off the wire, its own included, in the order of the
// exchange's nodes, so that the result does not depend on which node adds.
//
// A hierarchical all-reduce is three transfers of the plan: a reduce-scatter inside each region, all-reduces
// of a chunk between regions, and an all-gather inside each region. The chunk that a node holds between them
// is not a tensor of a model, so it waits in PartialMeans. The mean of the regions' means is the overall
// mean, since all regions have the same number of nodes.
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

/// A payload, seen from one of the nodes of its exchange.
struct PayloadAt {
  const costmodel::Exchange& exchange;
  const costmodel::Payload& payload;
  costmodel::NodeId node;
};

/// Returns what the node sends: a flat tensor [elements].
using PayloadSource = std::function<at::Tensor(const PayloadAt&)>;
/// Receives the result of the node: a flat tensor [elements].
///   all_reduce, all_to_all_broadcast   the mean over the exchange's nodes, the same bits at each
///   all_gather                         all chunks
///   reduce                             the mean over nodes[1] …, delivered at nodes[0]
///   broadcast, point_to_point          what nodes[0] sent, delivered at the other nodes
using PayloadSink = std::function<void(const PayloadAt&, const at::Tensor&)>;
/// Called with what a node contributed and with what the other nodes decode from it, where the codec is
/// lossy.
using LossSink = std::function<void(const PayloadAt&, const at::Tensor& sent, const at::Tensor& read)>;

/// Chunks of means between the transfers of a hierarchical all-reduce. Thread-safe.
class PartialMeans {
 public:
  /// Round, node that holds the chunk, content of the payload, and groups of tensors in it.
  using Key =
      std::tuple<std::int64_t, costmodel::NodeId, costmodel::Content, std::vector<costmodel::GroupId>>;
  void put(Key key, at::Tensor chunk);
  /// Removes and returns the chunk. Throws std::logic_error if there is none.
  at::Tensor take(const Key& key);

 private:
  std::mutex mutex_;
  std::map<Key, at::Tensor> chunks_;
};

/// Whether the payload of such a transfer is read from PartialMeans (from_partial) or ends in PartialMeans
/// (to_partial) instead of a model.
bool from_partial(const costmodel::Transfer& transfer, const costmodel::Payload& payload);
bool to_partial(const costmodel::Transfer& transfer, const costmodel::Payload& payload);

struct TransferOptions {
  bool exact_wire = false;  // see WireCodec
  LossSink lost = {};
  // how payloads are cut; each piece is one call. Empty: one call sends everything
  costmodel::Pieces pieces = {};
  int channel = 0;                  // see Transport::exchange
  PartialMeans* partial = nullptr;  // required by transfers that read or leave chunks
  std::int64_t round = 0;           // the outer round that the payloads belong to
};

/// A transfer in separate steps. Its receives can be posted long before there is anything to send, and
/// exchange(), which does all the waiting, may run in a thread beside training. `transfer` and `transport`
/// must outlive it.
class TransferRun {
 public:
  /// Throws std::invalid_argument for a pattern or wire format that the trainer does not support.
  TransferRun(const costmodel::Transfer& transfer, Transport& transport, const TransferOptions& options = {});
  ~TransferRun();
  TransferRun(const TransferRun&) = delete;
  TransferRun& operator=(const TransferRun&) = delete;

  /// Posts the receives of the first phase. exchange() posts those of each later phase when the phase before
  /// it begins.
  void expect();
  /// Reads what the hosted nodes send, from `source`.
  void read(const PayloadSource& source);
  /// Runs all phases. It takes the chunks of earlier transfers from PartialMeans when it starts, and puts its
  /// own there when it ends.
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
  std::vector<Step> steps_;  // the phases of all calls, call after call
  std::unique_ptr<Phase> first_;
};

/// What a receiver decodes from a payload that is sent unchanged (broadcast, point_to_point).
at::Tensor as_read(const costmodel::Payload& payload, const at::Tensor& flat, const TransferOptions& options);

/// Runs a whole transfer: read, exchange and deliver.
void run_transfer(const costmodel::Transfer& transfer, Transport& transport, const PayloadSource& source,
                  const PayloadSink& sink, const TransferOptions& options = {});

}  // namespace fomoe::trainer
