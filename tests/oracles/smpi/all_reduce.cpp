// An all-reduce as a real MPI program, which SMPI runs. It adds up real numbers, checks the sums, and prints
// the time at which each rank ends. It shares no code with fomoe, not even the schedule.
//
//   all_reduce ring|direct ELEMENTS
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

// The division of elements into n chunks: the first (elements mod n) chunks have one element more.
struct Chunks {
  int elements, n;
  int size(int c) const { return elements / n + (c < elements % n ? 1 : 0); }
  int begin(int c) const { return c * (elements / n) + (c < elements % n ? c : elements % n); }
};

void wait_for(std::vector<MPI_Request>& requests) {
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  requests.clear();
}

// A ring all-reduce. In n−1 steps each rank passes on partial sums, and in n−1 steps it passes on complete
// sums. Rank r completes chunk r+1, the last one that reaches it in the first half.
void ring(std::vector<float>& values, const Chunks& chunks, int rank, int n) {
  const int next = (rank + 1) % n, previous = (rank + n - 1) % n;
  std::vector<float> arrived(static_cast<std::size_t>(chunks.size(0)));
  std::vector<MPI_Request> requests;
  int out = rank;
  for (int step = 0; step < 2 * (n - 1); ++step) {
    const int in = (out + n - 1) % n;
    requests.resize(2);
    MPI_Irecv(arrived.data(), chunks.size(in), MPI_FLOAT, previous, step, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(values.data() + chunks.begin(out), chunks.size(out), MPI_FLOAT, next, step, MPI_COMM_WORLD,
              &requests[1]);
    wait_for(requests);
    float* into = values.data() + chunks.begin(in);
    const bool adding = step < n - 1;
    for (int i = 0; i < chunks.size(in); ++i)
      into[i] = arrived[static_cast<std::size_t>(i)] + (adding ? into[i] : 0);
    out = in;
  }
}

// A direct all-reduce. Every rank sends each chunk to its owner; the owner adds up, and sends the sums to
// all.
void direct(std::vector<float>& values, const Chunks& chunks, int rank, int n) {
  const auto own = static_cast<std::size_t>(chunks.size(rank));
  float* sum = values.data() + chunks.begin(rank);
  std::vector<float> arrived(own * static_cast<std::size_t>(n));
  std::vector<MPI_Request> requests;
  for (const bool adding : {true, false}) {
    for (int shift = 1; shift < n; ++shift) {
      const int peer = (rank + shift) % n;
      float* theirs = values.data() + chunks.begin(peer);
      float* into = adding ? arrived.data() + own * static_cast<std::size_t>(peer) : theirs;
      const int in = chunks.size(adding ? rank : peer), out = chunks.size(adding ? peer : rank);
      requests.resize(requests.size() + 2);
      MPI_Irecv(into, in, MPI_FLOAT, peer, adding, MPI_COMM_WORLD, &requests[requests.size() - 2]);
      MPI_Isend(adding ? theirs : sum, out, MPI_FLOAT, peer, adding, MPI_COMM_WORLD,
                &requests[requests.size() - 1]);
    }
    wait_for(requests);
    for (int peer = 0; adding && peer < n; ++peer) {
      if (peer == rank) continue;
      for (std::size_t i = 0; i < own; ++i) sum[i] += arrived[own * static_cast<std::size_t>(peer) + i];
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, n = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n);
  if (argc != 3) return 2;
  const Chunks chunks{std::atoi(argv[2]), n};
  // Small whole numbers, so that the sums are exact in any order: (rank + 1) · (i mod 7).
  std::vector<float> values(static_cast<std::size_t>(chunks.elements));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>((rank + 1) * (i % 7));

  const double start_s = MPI_Wtime();
  (std::string(argv[1]) == "ring" ? ring : direct)(values, chunks, rank, n);
  const double end_s = MPI_Wtime();

  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] == static_cast<float>(n * (n + 1) / 2 * (i % 7))) continue;
    std::printf("wrong %d %zu\n", rank, i);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  std::printf("end %d %.12e %.12e\n", rank, start_s, end_s);
  MPI_Finalize();
  return 0;
}
