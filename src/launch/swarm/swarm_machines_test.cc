#include "launch/swarm/swarm_machines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/cloud/machine_keeper.h"
#include "launch/swarm/swarm_spec.h"

namespace pscloud {
namespace {

using testing::Contains;
using testing::HasSubstr;

Cluster cluster_of_two() {
  Cluster cluster;
  cluster.target = "swarm";
  for (const char* name : {"server-0", "worker-0"}) {
    Host host;
    host.name = name;
    host.address = std::string("54.1.1.") + (name[0] == 's' ? "1" : "2");
    host.user = "admin";
    host.identity_file = "/keys/id";
    cluster.hosts.push_back(host);
  }
  cluster.options = {{"manager", "server-0"}, {"ssh_config", "/keys/ssh_config"}, {"idle", "3600"}};
  return cluster;
}

std::string refusal(const Cluster& cluster) {
  const auto machines = read_swarm_machines(cluster);
  return machines ? "accepted" : machines.error().message;
}

TEST(SwarmMachines, AreTheHostsOfAClusterFileThatNamesAManager) {
  const SwarmMachines machines = read_swarm_options(cluster_of_two()).value().machines;
  EXPECT_TRUE(machines.known());
  EXPECT_EQ(machines.find("worker-0")->address, "54.1.1.2");
  EXPECT_EQ(machines.find("worker-1"), nullptr);
  EXPECT_EQ(idle_of(cluster_of_two()).value(), 3600);
  EXPECT_FALSE(read_swarm_machines(Cluster()).value().known());
}

TEST(SwarmMachines, WhatDoesNotFitIsRefused) {
  Cluster cluster = cluster_of_two();
  cluster.target = "swarm";
  cluster.options[0].second = "worker-7";
  EXPECT_THAT(refusal(cluster), HasSubstr("swarm:manager=worker-7"));
  cluster.options[0].second = "server-0";
  cluster.options.emplace_back("host", "unix:///x");
  EXPECT_THAT(refusal(cluster), HasSubstr("one only"));
  cluster.options.back() = {"idle", "3600"};
  cluster.options[2].second = "soon";
  EXPECT_THAT(refusal(cluster), HasSubstr("swarm:idle=soon"));
  cluster.hosts.clear();
  EXPECT_THAT(refusal(cluster), HasSubstr("swarm:manager=server-0"));
}

TEST(SwarmMachines, AnEngineIsReachedByTheKeyOfItsCluster) {
  const EngineAddress engine = engine_of_machine(cluster_of_two().hosts[0], "/keys/ssh_config");
  EXPECT_EQ(engine.text, "ssh://admin@54.1.1.1");
  EXPECT_TRUE(engine.http.carry);
}

TEST(SwarmMachines, AShellIsInTheContainerOnItsMachine) {
  const Host machine = cluster_of_two().hosts[1];
  const auto words = machine_shell(machine, "/keys/ssh_config", "0123456789abcdef").value();
  EXPECT_EQ(words[0], "ssh");
  EXPECT_THAT(words, Contains("54.1.1.2"));
  EXPECT_THAT(words, Contains("/keys/id"));
  EXPECT_THAT(words.back(), HasSubstr("exec docker exec -it 0123456789abcdef sh"));
  EXPECT_FALSE(machine_shell(machine, "", "x; reboot"));
}

}  // namespace
}  // namespace pscloud
