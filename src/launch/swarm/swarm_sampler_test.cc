#include "launch/swarm/swarm_sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "io/scripted_http_server.h"
#include "launch/swarm/container_figures.h"

namespace pscloud {
namespace {

using std::chrono::seconds;
using testing::Contains;
using testing::ElementsAre;
using testing::Pair;
using testing::StartsWith;

JsonValue stats_of(double cpu_s, const std::string& more) {
  return JsonValue::parse(R"({"cpu_stats":{"cpu_usage":{"total_usage":)" + std::to_string(cpu_s * 1e9) + "}}" + more +
                          "}")
      .value();
}

TEST(ContainerFigures, AreThoseOfProcesses) {
  ContainerFigures container;
  const auto now = std::chrono::steady_clock::now();
  const std::string memory =
      R"(,"memory_stats":{"usage":1000,"stats":{"total_inactive_file":300}},"networks":{
          "eth0":{"rx_bytes":10,"tx_bytes":20},"eth1":{"rx_bytes":1,"tx_bytes":2}})";
  EXPECT_THAT(container.take(stats_of(7, memory), now),
              ElementsAre(Pair("memory_bytes", 700), Pair("sent_bytes", 22), Pair("received_bytes", 11)));
  // 3 s of work in 2 s are one core and a half.
  EXPECT_THAT(container.take(stats_of(10, ""), now + seconds(2)), ElementsAre(Pair("cpu_percent", 150)));
}

TEST(ContainerFigures, WhatAnEngineDoesNotSayIsNotMadeUp) {
  ContainerFigures container;
  const auto now = std::chrono::steady_clock::now();
  const JsonValue nothing = JsonValue::parse("[]").value();
  EXPECT_THAT(container.take(nothing, now), ElementsAre());
  EXPECT_THAT(container.take(nothing, now + seconds(2)), ElementsAre());
  EXPECT_THAT(container.take(stats_of(5, ""), now + seconds(4)), ElementsAre());
}

TEST(SwarmSampler, AsksTheEngineOfATasksNodeUntilItIsForgotten) {
  const std::string folder = testing::TempDir() + "swarm_sampler_test." + std::to_string(::getpid());
  std::filesystem::create_directory(folder);
  ScriptedHttpServer server(
      [](const std::string&) { return ScriptedHttpServer::text(200, R"({"memory_stats":{"usage":4096}})"); },
      folder + "/sock");
  {
    SwarmSampler sampler;
    const TaskId task{TaskRole::kWorker, 3};
    sampler.watch(task, "c1", "n1", find_engine("unix://" + folder + "/sock").value());
    std::vector<TaskEvent> events;
    const auto deadline = std::chrono::steady_clock::now() + seconds(20);
    while (events.empty() && std::chrono::steady_clock::now() < deadline) events = sampler.take();
    ASSERT_EQ(events.size(), 1u);
    EXPECT_EQ(events[0].kind, TaskEvent::Kind::kSample);
    EXPECT_EQ(events[0].task, task);
    EXPECT_THAT(events[0].figures, ElementsAre(Pair("memory_bytes", 4096)));
    EXPECT_THAT(server.requests(), Contains(StartsWith("GET /containers/c1/stats?")));
    sampler.forget(task);
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace pscloud
