// A store for the exchanges of a run: a folder that the processes of all sites reach, such as a mounted
// bucket or a network file system. An object is a file, which appears whole.
#pragma once
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "trainer/comm/transport.hpp"

namespace fomoe::trainer {

class SharedFolder : public ObjectStore {
 public:
  /// `folder` exists and belongs to this run alone. `names` are the names of the nodes in errors. With
  /// `owner` the destructor removes the folder.
  SharedFolder(std::string folder, std::vector<std::string> names, double timeout_s, bool owner);
  ~SharedFolder() override;
  SharedFolder(const SharedFolder&) = delete;
  SharedFolder& operator=(const SharedFolder&) = delete;

  /// Removes a folder of objects, as far as that is possible.
  static void remove_session(const std::string& folder);

  /// Throws std::runtime_error if the file cannot be written.
  void put(const std::string& name, const at::Tensor& bytes) override;
  /// Throws std::runtime_error if the file cannot be read or has another length.
  [[nodiscard]] at::Tensor get(const std::string& name, std::int64_t bytes,
                               costmodel::NodeId origin) override;
  /// Removes what this process put before the round `index` − 1.
  void begin_round(std::int64_t index) override;

 private:
  [[nodiscard]] std::string path_of(const std::string& name) const { return folder_ + '/' + name; }

  std::string folder_;
  std::vector<std::string> names_;  // by node
  double timeout_s_;
  bool owner_;
  std::mutex mutex_;
  std::int64_t round_ = 0;
  std::vector<std::pair<std::int64_t, std::string>> put_;  // round and path of the files of this process
};

}  // namespace fomoe::trainer
