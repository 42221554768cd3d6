#pragma once

#include <chrono>
#include <list>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "launch/agent/agent_connection.h"
#include "launch/backend.h"

namespace pscloud {

// The agents of a run, one for each machine, and the tasks that each of them has: what the back ends whose processes
// are ours to start have in common. One thread.
class AgentHosts {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // A sign of life for agents that would take silence for the launcher's end.
  static constexpr std::chrono::milliseconds kBeatEvery{1000};

  // By host.
  struct Answers {
    std::map<std::string, JsonValue> given;
    std::map<std::string, std::string> wrong;  // why there is none
  };

  AgentConnection& add(AgentConnection connection);
  AgentConnection* find(const std::string& host);
  bool empty() const { return hosts_.empty(); }

  // Asks all of them at once, each its own question (by host), and waits for the answers until `deadline`.
  Answers ask(const std::map<std::string, std::string>& questions, Time deadline);
  // The same; an error has a line for each host that is wrong.
  Result<std::map<std::string, JsonValue>> ask_all(const std::map<std::string, std::string>& questions, Time deadline);

  // Of a task that has been on another host only this one is heard from now on.
  void start(const std::string& host, const TaskSpec& spec);
  void release(const ClusterView& view);
  void stop(TaskId task, bool at_once);
  // As Backend::wait. A host whose stream ends before its tasks have ended has lost them.
  std::vector<TaskEvent> wait(Time deadline, int wake_fd);

  // This one is taken away: its agent ends with its last task.
  void let_go(const std::string& host);
  // It ended, or cannot be heard any more.
  bool is_lost(const std::string& host);

  // Says to all of them that the launcher lives, if that is due.
  void beat(Time now);

  // Lets all of them end, together, until `deadline`; who has not then is killed.
  void end(Time deadline);

 private:
  struct Machine {
    AgentConnection connection;
    std::set<TaskId> tasks;  // that have not ended
    std::vector<JsonValue> answers;
    bool lost = false;
    bool leaving = false;
  };

  void poll_all(Time deadline, int wake_fd);
  void read(Machine& machine, std::vector<TaskEvent>& events);

  std::list<Machine> hosts_;
  std::vector<TaskEvent> pending_;
  Time last_beat_{};
};

}  // namespace pscloud
