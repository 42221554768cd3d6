#pragma once

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/fd.h"
#include "launch/agent/agent_stream.h"
#include "launch/rendezvous/secure_pipe.h"
#include "launch/rendezvous/task_watch.h"
#include "net/tls.h"

namespace pscloud {

// Agents that connect to the launcher from wherever they were started: where no disk is shared. Mutual TLS: who has no
// certificate of this run's own CA is not listened to.
class SocketWatch final : public TaskWatch {
 public:
  // `listener` listens; `tls_folder` has the launcher's certificate.
  static Result<std::unique_ptr<SocketWatch>> begin(Fd listener, const std::string& tls_folder,
                                                    const std::vector<TaskId>& tasks);

  std::vector<TaskEvent> look(Now now) override;
  Now look_again() const override;
  void add_to(std::vector<pollfd>& polled) const override;
  Result<> release(const ClusterView& view) override;
  Result<> stop(TaskId task, bool at_once) override;
  void presume_lost(TaskId task, const std::string& why, Now deadline) override;

  // A sign of life so often, for agents that take silence for the launcher's end.
  static constexpr std::chrono::seconds kBeatEvery{3};

 private:
  struct Task {
    bool arrived = false;
    bool ended = false;
    std::optional<bool> stop;  // at once?
    std::optional<std::pair<Now, std::string>> lost_at;
  };
  struct Connection {
    std::unique_ptr<SecurePipe> pipe;
    AgentStream stream;  // destroyed first: the pipe then sends the rest
    std::set<TaskId> tasks;
  };

  SocketWatch(Fd listener, std::unique_ptr<TlsContext> tls) : listener_(std::move(listener)), tls_(std::move(tls)) {}

  void accept_all();
  void read(Connection& connection, std::vector<TaskEvent>& events);
  void take(Connection& connection, TaskEvent event, std::vector<TaskEvent>& events);

  Fd listener_;
  std::unique_ptr<TlsContext> tls_;  // outlives the pipes
  std::map<TaskId, Task> tasks_;
  std::list<Connection> connections_;
  Now beat_at_{};
};

}  // namespace pscloud
