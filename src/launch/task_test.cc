#include "launch/task.h"

#include <gtest/gtest.h>

namespace pscloud {
namespace {

TEST(Task, IdsAreReadAsTheyAreWritten) {
  for (const TaskId id :
       {TaskId{TaskRole::kWorker, 0}, TaskId{TaskRole::kScheduler, 0}, TaskId{TaskRole::kServer, 15}}) {
    EXPECT_EQ(*parse_task_id(id.text()), id);
  }
  for (const char* text : {"", "worker", "worker-", "worker--1", "worker-x", "wroker-0", "worker-0 ", "-0"}) {
    EXPECT_FALSE(parse_task_id(text)) << text;
  }
}

TEST(Task, ASpecIsTheSameAfterItsWay) {
  TaskSpec spec;
  spec.job = "j1";
  spec.run = "clicks";
  spec.id = {TaskRole::kServer, 2};
  spec.attempt = 1;
  spec.framework = Framework::kDmlc;
  spec.command = {"python", "a b", "'\"\n$*\\", ""};
  spec.environment = {{"A", "1"}, {"B", ""}};
  spec.files = {{"tls/node.key", "secret\n", "PSCLOUD_TLS_DIR", true}};
  spec.folder = "f";
  spec.advertise = "eth0";
  const auto back = parse_task_spec(task_spec_json(spec));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(task_spec_json(*back), task_spec_json(spec));
  EXPECT_EQ(back->command, spec.command);
  EXPECT_EQ(back->files.at(0).content, "secret\n");
}

TEST(Task, BytesThatAreNoTextArriveAsTheyAre) {
  const std::string bytes("\xff\xfe\0\xc3(", 5);
  TaskSpec spec;
  spec.command = {"cat", bytes};
  spec.environment = {{"A", bytes}};
  spec.files = {{"secrets/A", bytes, "", false}};
  spec.folder = spec.private_folder = bytes;
  const auto back = parse_task_spec(task_spec_json(spec));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->command, spec.command);
  EXPECT_EQ(back->environment, spec.environment);
  EXPECT_EQ(back->files.at(0).content, bytes);
  EXPECT_EQ(back->folder, bytes);
  EXPECT_EQ(back->private_folder, bytes);
}

TEST(Task, AFileOfATaskStaysInItsFolder) {
  TaskSpec spec;
  for (const char* name : {"/etc/passwd", "../x", "a/../../x", ""}) {
    spec.files = {{name, "", "", false}};
    EXPECT_FALSE(parse_task_spec(task_spec_json(spec))) << name;
  }
}

TEST(Task, AViewGivesTheAddressesOfARoleInOrder) {
  ClusterView view;
  view.job = "j";
  view.tasks = {
      {{TaskRole::kServer, 0}, {"a", 1}}, {{TaskRole::kWorker, 0}, {"b", 2}}, {{TaskRole::kWorker, 10}, {"c", 3}}};
  const auto back = parse_cluster_view(cluster_view_json(view));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->addresses(TaskRole::kWorker), (std::vector<Address>{{"b", 2}, {"c", 3}}));
  EXPECT_EQ(back->find({TaskRole::kServer, 0})->text(), "a:1");
  EXPECT_EQ(back->find({TaskRole::kServer, 1}), nullptr);
}

}  // namespace
}  // namespace pscloud
