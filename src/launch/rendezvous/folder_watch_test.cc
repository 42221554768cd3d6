#include "launch/rendezvous/folder_watch.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "base/random.h"
#include "launch/agent/agent_message.h"
#include "launch/rendezvous/rendezvous_file.h"

namespace pscloud {
namespace {

// Two tasks write to their files in pieces that end anywhere, also within a character, and the watcher looks between:
// each line comes once, whole, and in the order in which its task wrote it.
RC_GTEST_PROP(FolderWatch, TwoWritersInPiecesAreReadLineByLine, ()) {
  const TaskId tasks[] = {{TaskRole::kServer, 0}, {TaskRole::kWorker, 0}};
  std::string pattern = testing::TempDir() + "pscloud-watch-XXXXXX";
  const std::string parent = ::mkdtemp(pattern.data());
  const SharedFolder folder = *SharedFolder::make(parent, "j1");
  FolderWatch::Now now{};
  const auto watch = *FolderWatch::begin(folder, "j1", {tasks[0], tasks[1]}, {}, now);

  std::string unwritten[2];
  std::vector<std::string> said[2], heard[2];
  for (size_t writer : {size_t{0}, size_t{1}}) {
    RC_ASSERT(bool(folder.write(folder_file::arrival(tasks[writer], 0),
                                arrival_json({"j1", tasks[writer], 0, {"10.0.0.1", 1}, "here"}))));
    for (const auto& text : *rc::gen::container<std::vector<std::string>>(rc::gen::string<std::string>())) {
      const std::string line = agent_line({.kind = TaskEvent::Kind::kLine, .task = tasks[writer], .text = text});
      // Bytes that are no text become what JSON can hold.
      said[writer].push_back(parse_agent_line(line)->event->text);
      unwritten[writer] += line + "\n";
    }
  }
  const auto look = [&] {
    for (const TaskEvent& event : watch->look(now)) {
      if (event.kind == TaskEvent::Kind::kLine) heard[event.task == tasks[0] ? 0 : 1].push_back(event.text);
    }
  };
  Random random(*rc::gen::arbitrary<uint64_t>());
  while (!unwritten[0].empty() || !unwritten[1].empty()) {
    const size_t writer = random.below(2);
    const size_t bytes = 1 + random.below(200);
    std::ofstream(folder.path_of(folder_file::messages(tasks[writer], 0)), std::ios::app)
        << unwritten[writer].substr(0, bytes);
    unwritten[writer].erase(0, bytes);
    if (random.chance(0.5)) look();
  }
  look();
  std::filesystem::remove_all(parent);
  RC_ASSERT(heard[0] == said[0]);
  RC_ASSERT(heard[1] == said[1]);
}

// However much many tasks write, a look takes a part of it, and looks go round: nobody waits for ever.
TEST(FolderWatch, ALookIsBoundedAndLooksGoRound) {
  constexpr int kTasks = 40;
  std::string pattern = testing::TempDir() + "pscloud-watch-XXXXXX";
  const std::string parent = ::mkdtemp(pattern.data());
  const SharedFolder folder = *SharedFolder::make(parent, "j1");
  const std::string text(60000, 'x');
  std::vector<TaskId> tasks;
  for (int i = 0; i < kTasks; ++i) tasks.push_back({TaskRole::kWorker, i});
  const auto watch = *FolderWatch::begin(folder, "j1", tasks, {}, {});
  for (const TaskId task : tasks) {
    ASSERT_TRUE(folder.write(folder_file::arrival(task, 0), arrival_json({"j1", task, 0, {"10.0.0.1", 1}, "here"})));
    std::ofstream file(folder.path_of(folder_file::messages(task, 0)));
    for (int i = 0; i < 20; ++i) {
      file << agent_line({.kind = TaskEvent::Kind::kLine, .task = task, .text = text}) << '\n';
    }
  }
  std::map<TaskId, int> heard;
  int looks = 0;
  for (bool more = true; more; ++looks) {
    size_t bytes = 0;
    more = false;
    for (const TaskEvent& event : watch->look({})) {
      if (event.kind != TaskEvent::Kind::kLine) continue;
      more = true;
      bytes += event.text.size();
      ++heard[event.task];
    }
    EXPECT_LT(bytes, kTasks * 20 * text.size() / 2);
  }
  std::filesystem::remove_all(parent);
  EXPECT_GT(looks, 2);
  for (const TaskId task : tasks) EXPECT_EQ(heard[task], 20) << task.text();
}

}  // namespace
}  // namespace pscloud
