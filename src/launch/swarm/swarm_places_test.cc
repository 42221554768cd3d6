#include "launch/swarm/swarm_places.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>

#include "io/scripted_http_server.h"

namespace pscloud {
namespace {

using testing::HasSubstr;

constexpr const char* kTwoNodes = R"([
  {"ID":"n1","Description":{"Hostname":"ip-1"},"Spec":{"Availability":"active","Labels":{"pscloud.machine":"server-0"}},
   "Status":{"State":"ready","Addr":"10.0.0.1"}},
  {"ID":"n2","Description":{"Hostname":"ip-2"},"Spec":{"Availability":"active","Labels":{"pscloud.machine":"worker-0"}},
   "Status":{"State":"ready","Addr":"10.0.0.2"}},
  {"ID":"n3","Description":{"Hostname":"ip-3"},"Spec":{"Availability":"active","Labels":{"pscloud.machine":"worker-1"}},
   "Status":{"State":"down","Addr":"10.0.0.3"}}])";

class SwarmPlacesTest : public testing::Test {
 protected:
  SwarmPlacesTest()
      : folder_(testing::TempDir() + "swarm_places_test." + std::to_string(::getpid())),
        server_((std::filesystem::create_directory(folder_),
                 [this](const std::string& request) {
                   if (request.starts_with("POST /configs/create") && refusals_-- > 0) {
                     return ScriptedHttpServer::text(409, R"({"message":"config already exists"})");
                   }
                   return ScriptedHttpServer::text(200, request.starts_with("GET /nodes") ? kTwoNodes : "[]");
                 }),
                folder_ + "/sock"),
        engine_(find_engine("unix://" + folder_ + "/sock").value()) {
    options_.host_network = true;
    for (const auto& [name, role] : {std::pair("server-0", TaskRole::kServer), std::pair("worker-0", TaskRole::kWorker),
                                     std::pair("worker-1", TaskRole::kWorker)}) {
      Host host;
      host.name = host.address = name;
      host.roles = {role};
      cluster_.hosts.push_back(host);
    }
  }
  ~SwarmPlacesTest() override { std::filesystem::remove_all(folder_); }

  Plan plan(int servers, int workers) const {
    Job job;
    job.run = "r";
    job.roles = {{.role = TaskRole::kServer, .count = servers, .image = "x"},
                 {.role = TaskRole::kWorker, .count = workers, .image = "x"}};
    return make_plan(job, cluster_, "j1").value();
  }

  const std::string folder_;
  std::atomic<int> refusals_ = 0;  // of ports
  ScriptedHttpServer server_;
  DockerEngine engine_;
  SwarmOptions options_;
  Cluster cluster_;
};

TEST_F(SwarmPlacesTest, TasksGoToTheMachinesOfTheirRole) {
  options_.machines.hosts = cluster_.hosts;
  const auto places = find_places(engine_, plan(2, 1), options_, "host").value();
  EXPECT_EQ(places.at("server-0").node, "n1");
  EXPECT_EQ(places.at("server-1").node, "n1");
  EXPECT_EQ(places.at("worker-0").node, "n2");
  EXPECT_EQ(places.at("worker-0").address.host, "10.0.0.2");
  EXPECT_NE(places.at("server-0").address.port, places.at("server-1").address.port);
}

TEST_F(SwarmPlacesTest, AMachineThatIsNotReadyIsNamed) {
  options_.machines.hosts = cluster_.hosts;
  options_.machines.manager = "server-0";
  const auto places = find_places(engine_, plan(1, 2), options_, "host");
  EXPECT_EQ(places.error().code, Code::kUnavailable);
  EXPECT_THAT(places.error().message, HasSubstr("worker-1 is not ready in the swarm"));
}

TEST_F(SwarmPlacesTest, NodesOfASwarmThatWeDoNotKnowTakeTurns) {
  cluster_.hosts.clear();
  const auto places = find_places(engine_, plan(1, 2), options_, "host").value();
  EXPECT_EQ(places.at("server-0").node, "n1");
  EXPECT_EQ(places.at("worker-0").node, "n2");
  EXPECT_EQ(places.at("worker-1").node, "n1");
}

TEST_F(SwarmPlacesTest, APortThatAnotherJobTakesMeanwhileIsNotTaken) {
  refusals_ = 2;
  const auto places = find_places(engine_, plan(1, 1), options_, "host").value();
  std::vector<std::string> asked;  // for ports, by the names of configs
  for (const std::string& request : server_.requests()) {
    const size_t at = request.find("pscloud-port-");
    if (request.starts_with("POST /configs/create ")) asked.push_back(request.substr(at, request.find('"', at) - at));
  }
  ASSERT_EQ(asked.size(), 4u);  // two were refused
  EXPECT_EQ(asked[2], swarm_port_name(std::to_string(places.at("server-0").address.port)));
  EXPECT_EQ(asked[3], swarm_port_name(std::to_string(places.at("worker-0").address.port)));
}

TEST_F(SwarmPlacesTest, AnEngineThatRefusesAllPortsSaysWhy) {
  refusals_ = 1000;
  EXPECT_THAT(find_places(engine_, plan(1, 1), options_, "host").error().message, HasSubstr("config already exists"));
}

}  // namespace
}  // namespace pscloud
