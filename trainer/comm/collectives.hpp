// Runs a Transfer of a plan over a transport. A Transfer holds several Exchanges that run at the same time;
// an Exchange is a set of nodes that execute one communication pattern (costmodel/plan/plan.hpp). Every
// pattern is carried out in phases of point-to-point messages, so that an arbitrary set of nodes needs no
// process group. All exchanges of a transfer go through the same phases. In a phase, everything that one node
// sends to another is one message.
//
// Payloads can be cut into pieces (strategy.granularity, strategy.bucket_bytes). Each piece is then a
// separate call of the collective, and the calls run one after another, as in the simulator. Whether the cut
// changes the last bits of the result depends on the pattern and the format:
//   - Direct exchange with a plain format (fp32, bf16, fp16, fp8): The cut does not change the order of the
//     sums, so the result has the same bits as without the cut.
//   - Ring: The last bits can change, because the order of the sums depends on the chunk.
//   - Integer formats and top-k: The last bits can change, because the elements of a piece share scales and
//     the number of values to keep.
//
// The plan determines the chunks, the partners of each node and the order of the partners (chunk_elements,
// costmodel/plan/collective_steps.hpp). Sums are taken in fp32 (in fp64 for fp64 values). Under direct
// exchange, the node that adds first decodes every contribution from the wire format, also its own. It then
// adds the contributions in the order of the exchange's nodes, so the result does not depend on which node
// adds.
//
// A hierarchical all-reduce is three transfers of the plan: a reduce-scatter inside each region, all-reduces
// of a chunk between regions, and an all-gather inside each region. Between these transfers, each node keeps
// its chunk in PartialMeans, because the chunk is not a tensor of a model. The mean of the regions' means is
// the overall mean, since all regions have the same number of nodes.
#pragma once
#include <deque>
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
///   reduce                             the mean over nodes[1], nodes[2], …, delivered at nodes[0]
///   broadcast, point_to_point          what nodes[0] sent, delivered at the other nodes
using PayloadSink = std::function<void(const PayloadAt&, const at::Tensor&)>;
/// For each contribution of a node, receives what the encodings that the node made took from the sum of all
/// contributions, which is not 0 if the wire format is lossy. In a direct all-reduce these are the encodings
/// of its own chunks and of the mean of the chunk that it adds up, around a ring those of partial sums and of
/// one mean. What is lost after the first of the three transfers of a hierarchical all-reduce, or in a store,
/// is not among them.
using LossSink = std::function<void(const PayloadAt&, const at::Tensor& lost)>;

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

/// from_partial: whether the transfer reads this payload from PartialMeans instead of a model. to_partial:
/// whether the transfer writes its result to PartialMeans instead of a model.
bool from_partial(const costmodel::Transfer& transfer, const costmodel::Payload& payload);
bool to_partial(const costmodel::Transfer& transfer, const costmodel::Payload& payload);

struct TransferOptions {
  bool exact_wire = false;  // see WireCodec
  LossSink lost = {};
  // how payloads are cut, with one call per piece; if empty, one call sends the whole payload
  costmodel::Pieces pieces = {};
  int channel = 0;                  // see Transport::exchange
  at::Device device = at::kCPU;     // where a node that sends nothing decodes what it receives
  PartialMeans* partial = nullptr;  // required by transfers that read or leave chunks
  std::int64_t round = 0;           // the outer round that the payloads belong to
  int receives_ahead = 1;           // phases whose receives are posted before their turn; at least 1
};

/// A transfer in separate steps. The receives can be posted long before there is anything to send. Only
/// exchange() waits, and it may run in a thread beside training. `transfer` and `transport` must outlive the
/// TransferRun.
class TransferRun {
 public:
  /// Throws std::invalid_argument for a pattern or wire format that the trainer does not support.
  TransferRun(const costmodel::Transfer& transfer, Transport& transport, const TransferOptions& options = {});
  ~TransferRun();
  TransferRun(const TransferRun&) = delete;
  TransferRun& operator=(const TransferRun&) = delete;

  /// Posts the receives of the first phases. exchange() posts those of a later phase when the phase that is
  /// receives_ahead phases earlier begins.
  void expect();
  /// Reads what the hosted nodes send, from `source`.
  void read(const PayloadSource& source);
  /// Runs all phases. At its start, exchange() takes the chunks that earlier transfers left in PartialMeans.
  /// At its end, it puts the chunks of this transfer there.
  void exchange();
  /// Passes on results, and losses to TransferOptions::lost. May be called more than once.
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
  /// Posts the receives of all steps before `end`.
  void post_before(std::size_t end);

  Transport* transport_;
  TransferOptions options_;
  std::vector<std::unique_ptr<Cut>> cuts_;
  std::vector<std::pair<PayloadAt, at::Tensor>> losses_;  // of payloads that are not delivered
  std::vector<Step> steps_;                               // the phases of all calls, call after call
  std::deque<std::unique_ptr<Phase>> posted_;  // phases whose receives are posted, in the order of steps_
  std::size_t next_ = 0;                       // the step that will be posted next
};

/// What a receiver decodes from a payload that is sent unchanged (broadcast, point_to_point).
at::Tensor as_read(const costmodel::Payload& payload, const at::Tensor& flat, const TransferOptions& options);

/// Runs a whole transfer: read, exchange and deliver.
void run_transfer(const costmodel::Transfer& transfer, Transport& transport, const PayloadSource& source,
                  const PayloadSink& sink, const TransferOptions& options = {});

}  // namespace fomoe::trainer
