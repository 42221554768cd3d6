#include "launch/cluster_file.h"

#include <gtest/gtest.h>

#include "launch/backend.h"

namespace pscloud {
namespace {

std::string error_of(const char* text) {
  const auto cluster = parse_cluster_file(text, "c.json");
  return cluster ? "" : cluster.error().message;
}

// As the documentation of psd_run has it.
constexpr const char* kPoseidonFile = R"({
  "master_node": "10.0.0.1",
  "worker_nodes": ["10.0.0.2", "10.0.0.3", "10.0.0.2"],
  "server_nodes": ["10.0.0.3"],
  "username": "petuum",
  "pem_file": "/keys/aws.pem",
  "virtualenv": "/opt/env"
})";

TEST(ClusterFile, PoseidonsFileIsReadAsItIs) {
  const auto cluster = parse_cluster_file(kPoseidonFile, "c.json");
  ASSERT_TRUE(cluster) << cluster.error().message;
  EXPECT_TRUE(cluster->poseidon);
  EXPECT_EQ(cluster->target, "ssh");
  EXPECT_EQ(cluster->virtualenv, "/opt/env");
  ASSERT_EQ(cluster->hosts.size(), 5u);
  EXPECT_EQ(cluster->hosts[2].address, "10.0.0.2") << "a host stands there as often as it has tasks";
  EXPECT_EQ(cluster->hosts[3].roles, std::vector{TaskRole::kServer});
  EXPECT_EQ(cluster->hosts[4].roles, std::vector{TaskRole::kScheduler});
  for (const Host& host : cluster->hosts) {
    EXPECT_EQ(host.user, "petuum");
    EXPECT_EQ(host.identity_file, "/keys/aws.pem");
  }
}

TEST(ClusterFile, PoseidonsDefaultsAreItsOwn) {
  const auto cluster = parse_cluster_file(R"({"worker_nodes": ["a"], "server_nodes": ["a"]})", "c.json");
  ASSERT_TRUE(cluster) << cluster.error().message;
  EXPECT_EQ(cluster->hosts[0].user, "ubuntu");
  EXPECT_EQ(cluster->hosts[2].address, "localhost");
}

TEST(ClusterFile, CostsAreOfTheWholeOfAGroupsHostsOrOfOneHost) {
  const auto cluster = parse_cluster_file(R"({"cost_usd_per_hour": 1.5,
      "hosts": ["a", {"address": "b", "cost_usd_per_hour": 2}],
      "groups": [{"hosts": ["c", "d"], "cost_usd_per_hour": 0.25}]})",
                                          "c.json");
  ASSERT_TRUE(cluster) << cluster.error().message;
  const auto again = parse_cluster_file(cluster_json(*cluster), "again");
  ASSERT_TRUE(again) << again.error().message;
  for (const Cluster& each : {*cluster, *again}) {
    EXPECT_EQ(each.cost_usd_per_hour, 1.5);
    std::vector<double> costs;
    for (const Host& host : each.hosts) costs.push_back(host.cost_usd_per_hour);
    EXPECT_EQ(costs, (std::vector<double>{0, 2, 0.25, 0.25}));
  }
  EXPECT_EQ(error_of(R"({"hosts": ["a"], "cost_usd_per_hour": -1})"),
            "c.json:1:39: 'cost_usd_per_hour' must be a number from 0 to 1000000");
}

constexpr const char* kOurFile = R"({
  "user": "me", "interface": "eth1",
  "hosts": ["a", {"address": "10.0.0.2", "name": "b", "port": 2222, "slots": 4}],
  "groups": [{"name": "big", "roles": ["server"], "slots": 1, "user": "big",
              "hosts": ["c", {"address": "d", "slots": 2}]}],
  "image": "img", "files": ["data.csv"], "environment": {"A": "1"},
  "resources": {"worker": {"cpus": 2, "memory": "8G", "gpus": 1}}
})";

TEST(ClusterFile, WhatStandsNearestToAHostCounts) {
  const auto cluster = parse_cluster_file(kOurFile, "c.json");
  ASSERT_TRUE(cluster) << cluster.error().message;
  ASSERT_EQ(cluster->hosts.size(), 4u);
  EXPECT_EQ(cluster->hosts[0].interface, "eth1");
  EXPECT_EQ(cluster->hosts[1].name, "b");
  EXPECT_EQ(cluster->hosts[1].port, 2222);
  EXPECT_EQ(cluster->hosts[2].user, "big");
  EXPECT_EQ(cluster->hosts[2].slots, 1);
  EXPECT_EQ(cluster->hosts[3].slots, 2);
  EXPECT_EQ(cluster->hosts[3].roles, std::vector{TaskRole::kServer});
  ASSERT_EQ(cluster->resources.size(), 1u);
  EXPECT_EQ(cluster->resources[0].second.memory_bytes, 8ull << 30);
}

TEST(ClusterFile, IsTheSameAfterItsWay) {
  for (const char* text : {kPoseidonFile, kOurFile, R"({"target": "slurm", "options": {"partition": "gpu"}})"}) {
    const auto cluster = parse_cluster_file(text, "c.json");
    ASSERT_TRUE(cluster) << cluster.error().message;
    const std::string json = cluster_json(*cluster);
    const auto back = parse_cluster_file(json, "again");
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(cluster_json(*back), json);
    EXPECT_EQ(back->poseidon, cluster->poseidon);
    ASSERT_EQ(back->hosts.size(), cluster->hosts.size());
  }
}

TEST(ClusterFile, MistakesAreNamedByPlaceAndByWhatWasMeant) {
  EXPECT_EQ(error_of("{\n  \"worker_node\": [\"a\"]}"),
            "c.json:2:18: a cluster file has no 'worker_node'; did you mean 'worker_nodes'?");
  EXPECT_EQ(error_of("{\"hosts\": [\n{\"address\": \"a\", \"slot\": 2}]}"),
            "c.json:2:26: a host has no 'slot'; did you mean 'slots'?");
  EXPECT_EQ(error_of("{\"hosts\": \"a\"}"), "c.json:1:11: 'hosts' must be a list of hosts");
  EXPECT_EQ(error_of("{\"hosts\": [\"a\"], \"port\": 70000}"),
            "c.json:1:26: 'port' must be a whole number from 1 to 65535");
  EXPECT_EQ(error_of("{\"hosts\": [\"a\"],}"), "c.json:1:17: a name in quotes is expected here");
  EXPECT_EQ(error_of("{\"hosts\": [\"-oProxyCommand=x\"]}"),
            "c.json:1:12: '-oProxyCommand=x' is no name or address of a host");
  EXPECT_EQ(error_of("{\"hosts\": [\"a\"], \"resources\": {\"wroker\": {}}}"),
            "c.json:1:42: 'wroker' is no role: one of scheduler, server, chief, worker, evaluator");
  EXPECT_NE(error_of("{}").find("no host stands in it"), std::string::npos);
  EXPECT_NE(error_of("[]").find("must be an object"), std::string::npos);
}

TEST(ClusterFile, TwoHostsOfOneNameAreOneHostOrRefused) {
  EXPECT_TRUE(parse_cluster_file(R"({"hosts": ["10.0.0.1", "10.0.0.1"]})", "c.json"));
  EXPECT_TRUE(parse_cluster_file(
      R"({"hosts": [{"address": "gate", "port": 2201, "name": "a"}, {"address": "gate", "port": 2202, "name": "b"}]})",
      "c.json"));
  const auto ports = parse_cluster_file(
      R"({"hosts": [{"address": "gate", "port": 2201}, {"address": "gate", "port": 2202}]})", "c.json");
  ASSERT_FALSE(ports);
  EXPECT_EQ(ports.error().message,
            "c.json: two hosts are called 'gate', and differ in address, port or user: give each a \"name\"");
  EXPECT_FALSE(find_cluster("ssh:me@gate,you@gate"));
}

TEST(ClusterFile, MemoryIsReadWithItsUnit) {
  const auto bytes = [](const char* text) {
    const auto cluster =
        parse_cluster_file(fmt::format(R"({{"hosts":["a"],"resources":{{"worker":{{"memory":{}}}}}}})", text), "c");
    return cluster ? cluster->resources.at(0).second.memory_bytes : 0;
  };
  EXPECT_EQ(bytes("4096"), 4096u);
  EXPECT_EQ(bytes("\"512M\""), 512u << 20);
  EXPECT_EQ(bytes("\"1.5GiB\""), 3ull << 29);
  for (const char* bad : {"\"\"", "\"G\"", "\"8X\"", "-1", "\"-1G\"", "\"nan\"", "\"1e30T\"", "true"}) {
    EXPECT_EQ(bytes(bad), 0u) << bad;
  }
}

TEST(FindCluster, OptionsStandBehindTheKind) {
  const auto cluster = find_cluster("fake:check=no route,die=,image=a/b:c");
  ASSERT_TRUE(cluster) << cluster.error().message;
  EXPECT_EQ(cluster->target, "fake");
  EXPECT_EQ(option_of(*cluster, "check"), "no route");
  EXPECT_EQ(cluster->image, "a/b:c");
  EXPECT_FALSE(find_cluster("fake:nonsense"));
}

TEST(FindCluster, WhatIsNeitherAFileNorAKindIsSaidSo) {
  const auto cluster = find_cluster("fakke");
  ASSERT_FALSE(cluster);
  EXPECT_NE(cluster.error().message.find("did you mean 'fake'?"), std::string::npos) << cluster.error().message;
}

TEST(MakeBackend, AnUnknownOptionIsNamedWithTheNearest) {
  Cluster cluster;
  cluster.target = "fake";
  cluster.options = {{"chekc", "x"}};
  const auto backend = make_backend(cluster, "");
  ASSERT_FALSE(backend);
  EXPECT_NE(backend.error().message.find("did you mean 'check'?"), std::string::npos) << backend.error().message;
}

}  // namespace
}  // namespace pscloud
