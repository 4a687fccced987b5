// Tests of the metadata of checkpoints: they come back as written, and wrong ones are named.
#include "trainer/execution/checkpoint_header.hpp"

#include <string>

#include "tests/trainer/support.hpp"

using namespace fomoe::trainer;

namespace {

CheckpointHeader written() {
  CheckpointHeader header;
  header.digest = {{"seed", "42"}, {"data", "d"}};
  header.node = 2;
  header.nodes = 3;
  header.absent = {1};
  header.rounds = 7;
  header.steps = 56;
  header.model = testing::tiny_shape();
  header.constants = {.rope_theta = 500'000, .router_temperature = 0.1};
  header.experts = {.local = {}, .skip_token = true};
  for (std::int64_t layer = 0; layer < header.model.layers; ++layer) {
    header.experts.local.push_back({0, static_cast<int>(layer) + 1});
    header.expert_steps.push_back({{56, -1}, {8, 0.5}});
  }
  return header;
}

}  // namespace

TEST_CASE("the header of a checkpoint comes back as it was written") {
  const CheckpointHeader header = written(), read = checkpoint_header(to_metadata(header), "node-2");
  CHECK((read.digest == header.digest));
  CHECK(read.node == 2);
  CHECK(read.nodes == 3);
  CHECK((read.absent == header.absent));
  CHECK(read.rounds == 7);
  CHECK(read.steps == 56);
  CHECK(read.model.d_expert == header.model.d_expert);
  CHECK((read.constants == header.constants));
  CHECK((read.experts.local == header.experts.local));
  CHECK(read.experts.skip_token);
  CHECK((read.expert_steps == header.expert_steps));
}

TEST_CASE("a header with a value that is missing or wrong is unusable, and its file is named") {
  const auto refused = [](const std::string& key, const std::string& value) {
    Metadata metadata = to_metadata(written());
    if (value == "missing") {
      metadata.erase(key);
    } else {
      metadata[key] = value;
    }
    CHECK_THROWS_WITH_AS(checkpoint_header(metadata, "dir/node-2"),
                         doctest::Contains("dir/node-2: got a checkpoint"), UnusableFile);
  };
  for (const auto& [key, value] : to_metadata(written())) {
    CAPTURE(key);
    if (key == "format") continue;
    if (key != "absent" && key != "rope_theta" && key != "router_temperature") refused(key, "missing");
    if (key != "skip_token") refused(key, "no number, and no JSON");
    if (key != "skip_token") refused(key, "{");
  }
  refused("steps", "99999999999999999999");
  refused("steps", "-1");
  refused("steps", "8 ");
  refused("experts", "[[0,1]]");                    // of one layer
  refused("experts", "[[0,1000000],[0,1],[0,1]]");  // of another model
  refused("expert_steps", "[[[1,-1]],[[1,-1]]]");   // of one expert
  refused("absent", "[\"one\"]");
}

TEST_CASE("a file that is no checkpoint of this version is refused") {
  Metadata metadata = to_metadata(written());
  metadata["format"] = "fomoe.checkpoint/1";
  CHECK_THROWS_WITH_AS(checkpoint_header(metadata, "node-2"),
                       doctest::Contains("node-2: got a file in another format"), fomoe::FileError);
  CHECK_THROWS_AS(checkpoint_header({}, "node-2"), fomoe::FileError);
}
