#include "launch/cloud/cloud_folder.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <utime.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "launch/agent/keep_alive.h"

namespace pscloud {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

CloudState state_of_blue() {
  CloudState state;
  state.plan.name = "blue";
  state.plan.id = "0123456789abcdef";
  state.plan.region = "eu-west-1";
  state.plan.user = "admin";
  state.step = "up";
  state.machines = {{"server-0", "server", "i-1", "172.31.96.4", "54.1.1.1", false},
                    {"worker-0", "worker", "i-2", "172.31.96.5", "54.1.1.2", true}};
  return state;
}

// A home of its own, which the environment names as long as this lives.
class CloudFolderTest : public testing::Test {
 protected:
  CloudFolderTest() {
    char path[] = "/tmp/pscloud-cloud-XXXXXX";
    home_ = ::mkdtemp(path);
    ::setenv("PSCLOUD_HOME", home_.c_str(), 1);
  }
  ~CloudFolderTest() override {
    ::unsetenv("PSCLOUD_HOME");
    std::filesystem::remove_all(home_);
  }
  std::string home_;
};

TEST_F(CloudFolderTest, AStateIsReadAsItWasWritten) {
  const CloudState state = state_of_blue();
  const std::string json = cloud_state_json(state);
  EXPECT_EQ(cloud_state_json(parse_cloud_state(json).value()), json);
  EXPECT_FALSE(parse_cloud_state("{}"));
  EXPECT_FALSE(parse_cloud_state("{\"step\""));
}

TEST_F(CloudFolderTest, AFolderIsForItsUserAloneAndANameIsTakenOnce) {
  const auto folder = create_cloud_folder(state_of_blue());
  ASSERT_TRUE(folder) << folder.error().message;
  struct stat info {};
  for (const char* file : {"", "id", "state.json", "ssh_config"}) {
    ASSERT_EQ(::stat(folder->path(file).c_str(), &info), 0) << file;
    EXPECT_EQ(info.st_mode & 077, 0) << file;
  }
  EXPECT_THAT(list_clouds(), ElementsAre("blue"));
  EXPECT_THAT(create_cloud_folder(state_of_blue()).error().message, HasSubstr("already"));
  EXPECT_THAT(open_cloud_folder("blu").error().message, HasSubstr("did you mean 'blue'?"));
  CloudState wrong = state_of_blue();
  wrong.plan.name = "slurm";
  EXPECT_THAT(create_cloud_folder(wrong).error().message, HasSubstr("is a kind of cluster"));
}

TEST_F(CloudFolderTest, JobsRunOnAClusterByItsNameOnceItIsUp) {
  const CloudState state = state_of_blue();
  const RunFolder folder = create_cloud_folder(state).value();
  EXPECT_THAT(find_cluster("blue").error().message, HasSubstr("is not up"));
  ASSERT_TRUE(folder.write("cluster.json", cluster_json(cluster_of(folder, state))));
  const Cluster cluster = find_cluster("blue").value();
  EXPECT_EQ(cluster.target, "ssh");
  ASSERT_EQ(cluster.hosts.size(), 2);
  EXPECT_EQ(cluster.hosts[1].address, "54.1.1.2");
  EXPECT_EQ(cluster.hosts[1].interface, "172.31.96.5");
  EXPECT_THAT(cluster.hosts[1].roles, ElementsAre(TaskRole::kWorker));
  EXPECT_EQ(cluster.hosts[0].identity_file, folder.path("id"));
  EXPECT_THAT(cluster.environment, ElementsAre(testing::Pair("AWS_REGION", "eu-west-1")));
  EXPECT_EQ(find_cluster("red").error().code, Code::kInvalid);
}

TEST_F(CloudFolderTest, AMachineIsFoundByEitherName) {
  const CloudState state = state_of_blue();
  EXPECT_EQ(find_machine(state, "worker-0").value().instance, "i-2");
  EXPECT_EQ(find_machine(state, "0.worker").value().instance, "i-2");
  EXPECT_THAT(find_machine(state, "7.worker").error().message, HasSubstr("server-0, worker-0"));
}

TEST_F(CloudFolderTest, AnAgentKeepsItsMachineAlive) {
  const std::string file = home_ + "/alive";
  std::ofstream(file) << "";
  const utimbuf old{.actime = 1000, .modtime = 1000};
  const auto modified = [&] {
    struct stat info {};
    ::stat(file.c_str(), &info);
    return info.st_mtime;
  };
  ::utime(file.c_str(), &old);
  KeepAlive keep(file);
  const auto now = std::chrono::steady_clock::now();
  keep.beat(now);
  EXPECT_GT(modified(), 1000);
  ::utime(file.c_str(), &old);
  keep.beat(now + std::chrono::seconds(1));  // not each time
  EXPECT_EQ(modified(), 1000);
  keep.beat(now + std::chrono::minutes(1));
  EXPECT_GT(modified(), 1000);
}

}  // namespace
}  // namespace pscloud
