#include "launch/cloud/cloud_folder.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <utime.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "launch/agent/keep_alive.h"
#include "launch/backend.h"

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
  CloudState state = state_of_blue();
  state.machines.push_back({"controller-0", "controller", "i-3", "172.31.0.9", "54.1.1.3", false});  // takes no tasks
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

TEST_F(CloudFolderTest, AnAddressThatHasANewMachineHasNoKeyAndOthersKeepTheirs) {
  const RunFolder folder = create_cloud_folder(state_of_blue()).value();
  ASSERT_TRUE(forget_host_key(folder, "172.31.96.4"));
  ASSERT_TRUE(folder.write("known_hosts", "172.31.96.4 ssh-ed25519 A\n172.31.96.44 ssh-ed25519 B\n172.31.96.4 rsa C"));
  ASSERT_TRUE(forget_host_key(folder, "172.31.96.4"));
  EXPECT_EQ(folder.read("known_hosts").value(), "172.31.96.44 ssh-ed25519 B\n");
}

TEST_F(CloudFolderTest, AMachineInThePlaceOfAnotherIsUsedOnceItHasAnAddress) {
  CloudState state = state_of_blue();
  const RunFolder folder = create_cloud_folder(state).value();
  state.machines.push_back({"worker-1", "worker", "i-3", "", "", true, "worker-0"});
  const std::string json = cloud_state_json(state);
  EXPECT_EQ(cloud_state_json(parse_cloud_state(json).value()), json);
  const Cluster cluster = cluster_of(folder, state);
  EXPECT_EQ(cluster.cloud, "blue");
  ASSERT_EQ(cluster.hosts.size(), 2u);
  EXPECT_FALSE(cluster.hosts[0].spot);
  EXPECT_TRUE(cluster.hosts[1].spot);
  const auto again = parse_cluster_file(cluster_json(cluster), "cluster.json");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->cloud, "blue");
  EXPECT_TRUE(again->hosts[1].spot);
}

TEST_F(CloudFolderTest, AJobCostsWhatItsMachinesDo) {
  CloudState state = state_of_blue();
  for (const char* role : {"server", "worker", "controller"}) {
    CloudPlan::Group group;
    group.role = role;
    group.count = 1;
    group.spot = group.role == "worker";
    state.plan.groups.push_back(group);
  }
  state.plan.groups[0].price.dollars = 0.25;
  state.plan.groups[1].price.dollars = 0.0625;
  state.plan.groups[2].price.dollars = 0.5;
  state.machines.push_back({"controller-0", "controller", "i-3", "172.31.0.9", "54.1.1.3", false});
  state.machines.push_back({"worker-1", "worker", "i-4", "172.31.96.6", "54.1.1.4", false, "worker-9", 0.125});
  const std::string json = cloud_state_json(state);
  EXPECT_EQ(cloud_state_json(parse_cloud_state(json).value()), json);
  const RunFolder folder = create_cloud_folder(state).value();
  Job job;
  job.run = "r";
  job.roles = {{.role = TaskRole::kServer, .commands = {{"s"}}}, {.role = TaskRole::kWorker, .commands = {{"w"}}}};
  job.roles[1].count = 2;
  const auto plan = [&] {
    return make_plan(job, parse_cluster_file(cluster_json(cluster_of(folder, state)), "c").value(), "j1").value();
  };
  EXPECT_EQ(plan().cost_usd_per_hour, 0.25 + 0.0625 + 0.125 + 0.5);  // with the controller's
  EXPECT_FALSE(plan().cost_incomplete);
  state.plan.groups[1].price = {.dollars = std::nullopt, .unknown = "nobody says"};
  EXPECT_EQ(plan().cost_usd_per_hour, 0.25 + 0.125 + 0.5);
  EXPECT_TRUE(plan().cost_incomplete);
  state.machines.back().dollars_per_hour.reset();  // on demand, in a group whose price is that of spot machines
  state.plan.groups[1].price.dollars = 0.0625;
  EXPECT_TRUE(plan().cost_incomplete);
}

TEST_F(CloudFolderTest, JobsOnASwarmGoThroughItsManager) {
  CloudState state = state_of_blue();
  state.plan.swarm = true;
  state.plan.idle_s = 3600;
  state.plan.groups.resize(2);
  state.plan.groups[0].role = "server";
  state.plan.groups[1].role = "worker";
  const RunFolder folder = create_cloud_folder(state).value();
  ASSERT_TRUE(folder.write("cluster.json", cluster_json(cluster_of(folder, state))));
  const Cluster cluster = find_cluster("blue").value();
  EXPECT_EQ(cluster.target, "swarm");
  EXPECT_EQ(option_of(cluster, "manager"), "server-0");
  EXPECT_EQ(option_of(cluster, "network"), "host");
  EXPECT_EQ(cluster.hosts[0].identity_file, folder.path("id"));
  const auto backend = make_backend(cluster, "");
  ASSERT_TRUE(backend) << backend.error().message;
  // Tasks go where their role belongs.
  Job job;
  job.run = "r";
  for (const TaskRole role : {TaskRole::kServer, TaskRole::kWorker}) job.roles.push_back({.role = role, .image = "x"});
  const Plan plan = make_plan(job, cluster, "j1").value();
  EXPECT_EQ(plan.tasks[0].host, "server-0");
  EXPECT_EQ(plan.tasks[1].host, "worker-0");
}

TEST_F(CloudFolderTest, AMachineIsFoundByEitherName) {
  const CloudState state = state_of_blue();
  EXPECT_EQ(find_machine(state, "worker-0").value().instance, "i-2");
  EXPECT_EQ(find_machine(state, "0.worker").value().instance, "i-2");
  EXPECT_THAT(find_machine(state, "7.worker").error().message, HasSubstr("server-0, worker-0"));
}

TEST_F(CloudFolderTest, AMachineThatIsForAllRolesIsFoundByEachOfThem) {
  CloudState state = state_of_blue();
  state.machines = {{"node-0", "node", "i-1", "172.31.96.4", "54.1.1.1", false},
                    {"node-1", "node", "i-2", "172.31.96.5", "54.1.1.2", false},
                    {"controller-0", "controller", "i-3", "172.31.0.9", "54.1.1.3", false}};
  for (const char* name : {"node-1", "1.node", "1.worker", "worker-1", "1.server"}) {
    EXPECT_EQ(find_machine(state, name).value().instance, "i-2") << name;
  }
  for (const char* name : {"2.worker", "0.chief", "1.controller"}) {
    EXPECT_THAT(find_machine(state, name).error().message, HasSubstr("node-0, node-1, controller-0")) << name;
  }
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

TEST_F(CloudFolderTest, AMachineOfTheCloudIsToldToEndItselfAndAnotherIsNot) {
  const std::string file = home_ + "/alive";
  KeepAlive(file).end_machine();
  EXPECT_FALSE(std::filesystem::exists(file));
  std::ofstream(file) << "";
  KeepAlive(file).end_machine();
  std::string word;
  std::ifstream(file) >> word;
  EXPECT_EQ(word, "end");  // for the watch of user_data()
}

}  // namespace
}  // namespace pscloud
