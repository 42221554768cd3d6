#include "launch/queue/backend_slurm.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/fd.h"
#include "launch/rendezvous/rendezvous_file.h"

namespace pscloud {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;
using std::chrono::steady_clock;

const TaskId kQueuedWorker{TaskRole::kWorker, 0};

// Programs of ours in the place of Slurm's. tests/cluster/slurm_test.py has the real ones, which answer at once.
class SlurmBackendTest : public testing::Test {
 protected:
  SlurmBackendTest() {
    std::string pattern = testing::TempDir() + "pscloud-slurm-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    fs::create_directory(folder_ / "bin");
    ::setenv("PATH", fmt::format("{}:{}", (folder_ / "bin").string(), path_).c_str(), 1);
    add_program("sbatch", "cat >/dev/null; echo 77");
  }
  ~SlurmBackendTest() override {
    ::setenv("PATH", path_.c_str(), 1);
    fs::remove_all(folder_);
  }

  void add_program(const std::string& name, const std::string& script) const {
    const fs::path path = folder_ / "bin" / name;
    std::ofstream(path) << "#!/bin/sh\n" << script << '\n';
    fs::permissions(path, fs::perms::owner_all);
  }

  const std::string path_ = std::getenv("PATH");
  fs::path folder_;
};

TEST_F(SlurmBackendTest, TasksAreHeardWhileSlurmTakesItsTimeToAnswer) {
  const fs::path asked = folder_ / "asked";
  add_program("squeue", fmt::format(": > {}; exec sleep 1000", asked.string()));
  Cluster cluster;
  cluster.target = "slurm";
  cluster.options = {{"folder", (folder_ / "shared").string()}, {"program", "pscloud"}};
  auto backend = make_slurm_backend(cluster, folder_.string());
  ASSERT_TRUE(backend) << backend.error().message;
  Plan plan;
  plan.job = "j7";
  plan.run = "ctr";
  plan.tasks.resize(1);
  plan.tasks[0].spec.job = plan.job;
  plan.tasks[0].spec.id = kQueuedWorker;
  Ledger ledger = *Ledger::open((folder_ / "ledger").string());
  const auto started = (*backend)->start(plan, ledger);
  ASSERT_TRUE(started) << started.error().message;

  const auto began = steady_clock::now();
  int wake[2];
  ASSERT_EQ(::pipe(wake), 0);
  const Fd quiet(wake[0]), silent(wake[1]);
  const auto patience = began + seconds(20);
  while (!fs::exists(asked) && steady_clock::now() < patience) {
    ASSERT_TRUE((*backend)->wait(steady_clock::now() + seconds(1), quiet.get()));
  }
  ASSERT_TRUE(fs::exists(asked));
  const SharedFolder shared = *SharedFolder::open((folder_ / "shared/j7").string());
  ASSERT_TRUE(shared.write(folder_file::arrival(kQueuedWorker, 0),
                           arrival_json({"j7", kQueuedWorker, 0, {"10.0.0.1", 1}, "here"})));
  const auto events = (*backend)->wait(patience, quiet.get());
  ASSERT_TRUE(events);
  ASSERT_EQ(events->size(), 1U);
  EXPECT_EQ(events->front().kind, TaskEvent::Kind::kArrived);
  backend->reset();  // does not wait for Slurm either
  EXPECT_LT(steady_clock::now(), patience);
}

}  // namespace
}  // namespace pscloud
