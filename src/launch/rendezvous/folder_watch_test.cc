#include "launch/rendezvous/folder_watch.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <filesystem>
#include <fstream>

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

}  // namespace
}  // namespace pscloud
