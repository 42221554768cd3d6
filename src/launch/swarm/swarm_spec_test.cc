#include "launch/swarm/swarm_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/base64.h"
#include "base/json_value.h"
#include "launch/backend.h"
#include "launch/swarm/container_task.h"

namespace pscloud {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(ContainerFiles, TwoOfOneNameAreRefused) {
  std::string pattern = testing::TempDir() + "pscloud-files-XXXXXX";
  const std::string folder = ::mkdtemp(pattern.data());
  Plan plan;
  for (const char* each : {"a", "b"}) {
    std::filesystem::create_directory(folder + "/" + each);
    plan.files.push_back(folder + "/" + each + "/train.py");
    std::ofstream(plan.files.back()) << each;
  }
  EXPECT_THAT(container_files(plan, 1000).error().message, HasSubstr("b/train.py: another file is called so"));
  plan.files.pop_back();
  EXPECT_EQ(container_files(plan, 1000)->size(), 1u);
  std::filesystem::remove_all(folder);
}

TEST(SwarmPreview, ShowsAllThatIsMadeWithoutSecrets) {
  Job job;
  job.run = "clicks";
  RoleSpec role;
  role.role = TaskRole::kWorker;
  role.count = 2;
  role.image = "team/trainer:1";
  role.commands = {{"train"}};
  job.roles = {role};
  job.secrets = {{.name = "secrets/TOKEN", .content = "very secret", .variable = "TOKEN_FILE"}};
  job.files = {"train.py"};
  Cluster cluster;
  cluster.target = "swarm";
  const Plan plan = make_plan(job, cluster, "j0123456789a").value();
  const std::string text = make_backend(cluster, "").value()->preview(plan).value();
  std::vector<std::string> names;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) names.push_back((*JsonValue::parse(line))["Name"].text());
  const std::string begin = "clicks-j0123456789a-";
  EXPECT_THAT(names, ElementsAre(begin + "network", begin + "config-1", begin + "secret-2", begin + "worker-0",
                                 begin + "worker-1", begin + "engine-call", begin + "call-1"));
  EXPECT_THAT(text, Not(HasSubstr(base64("very secret"))));
  EXPECT_THAT(text, HasSubstr("/run/pscloud/train.py"));
}

TEST(ParseUnixUs, ReadsTheTimesOfEngines) {
  EXPECT_EQ(parse_unix_us("2026-11-18T06:37:00Z"), 1794983820000000);  // date -u -d 2026-11-18T06:37:00Z +%s
  EXPECT_EQ(parse_unix_us("2026-11-18T06:37:00.123456789Z"), 1794983820123456);
  EXPECT_EQ(parse_unix_us("2026-11-18T06:37:00.5Z"), 1794983820500000);
  for (const char* wrong : {"", "soon", "2026-11-18", "2026-11-18T06:37:00"})
    EXPECT_EQ(parse_unix_us(wrong), 0) << wrong;
}

Plan swarm_plan() {
  Job job;
  job.run = "clicks";
  job.stop_grace_ms = 7000;
  for (const TaskRole role : {TaskRole::kServer, TaskRole::kWorker}) {
    RoleSpec spec;
    spec.role = role;
    spec.image = "team/trainer:1";
    spec.count = 2;
    spec.resources = {.cpus = 2, .memory_bytes = 1 << 20, .gpus = 1};
    job.roles.push_back(spec);
  }
  job.roles[1].commands = {{"a b", "'\"$*\n"}};
  job.environment = {{"PYTHONUNBUFFERED", "0"}, {"TEMPLATE", "{{.Node.ID}}"}};
  job.secrets = {{.name = "secrets/TOKEN", .content = "very secret", .variable = "TOKEN_FILE"},
                 {.name = "tls/node.key", .content = "key", .variable = "PSCLOUD_TLS_DIR", .name_folder = true}};
  Cluster cluster;
  cluster.target = "swarm";
  return make_plan(job, cluster, "j0123456789a").value();
}

ClusterView swarm_view(const Plan& plan) {
  ClusterView view{plan.job, {}};
  for (const PlannedTask& task : plan.tasks) view.tasks.push_back({task.spec.id, {task.spec.id.text(), 20000}});
  return view;
}

std::vector<std::string> json_texts(const JsonValue& array) {
  std::vector<std::string> result;
  for (const JsonValue& item : array.items()) result.push_back(item.text());
  return result;
}

JsonValue service_of(const Plan& plan, TaskId id, const SwarmOptions& options = {}) {
  const ContainerTask container = container_task(plan, swarm_view(plan), *plan.find(id));
  std::vector<SwarmFile> secrets;
  for (const auto& file : container.secrets) secrets.push_back({"id", "name", file.path});
  return JsonValue::parse(
             swarm_service_json(plan, *plan.find(id), container, options, {"net", "", {"x", 21000}}, secrets, {}))
      .value();
}

TEST(SwarmSpec, AServiceIsOneTaskThatRunsOnce) {
  const Plan plan = swarm_plan();
  const JsonValue service = service_of(plan, {TaskRole::kWorker, 1});
  EXPECT_EQ(service["Name"].text(), "clicks-j0123456789a-worker-1");
  EXPECT_EQ(service["Labels"]["pscloud.job"].text(), "j0123456789a");
  EXPECT_EQ(service["Labels"]["pscloud.task"].text(), "worker-1");
  EXPECT_EQ(service["Mode"]["Replicated"]["Replicas"].integer(), 1);
  EXPECT_EQ(service["EndpointSpec"]["Mode"].text(), "dnsrr");
  const JsonValue& task = service["TaskTemplate"];
  EXPECT_EQ(task["RestartPolicy"]["Condition"].text(), "none");
  EXPECT_EQ(task["Networks"].items()[0]["Target"].text(), "net");
  EXPECT_EQ(json_texts(task["Networks"].items()[0]["Aliases"]), std::vector<std::string>{"worker-1"});
  EXPECT_EQ(task["Resources"]["Reservations"]["NanoCPUs"].integer(), 2000000000);
  EXPECT_EQ(task["ContainerSpec"]["StopGracePeriod"].integer(), 7000000000);
  EXPECT_TRUE(task["ContainerSpec"]["Init"].truth());
}

TEST(SwarmSpec, CommandsStandBehindTheImagesOwnEntrypoint) {
  const Plan plan = swarm_plan();
  const JsonValue worker = service_of(plan, {TaskRole::kWorker, 0});
  const JsonValue& container = worker["TaskTemplate"]["ContainerSpec"];
  EXPECT_EQ(json_texts(container["Args"]), (std::vector<std::string>{"a b", "'\"$*\n"}));
  EXPECT_TRUE(container["Command"].is(JsonValue::Kind::kNull));
  const JsonValue server = service_of(plan, {TaskRole::kServer, 0});
  EXPECT_TRUE(server["TaskTemplate"]["ContainerSpec"]["Args"].is(JsonValue::Kind::kNull));
}

TEST(SwarmSpec, VariablesComeOutAsTheyAreAndTheUsersWin) {
  const Plan plan = swarm_plan();
  const JsonValue service = service_of(plan, {TaskRole::kServer, 1});
  const auto variables = json_texts(service["TaskTemplate"]["ContainerSpec"]["Env"]);
  EXPECT_THAT(variables, Contains("PSCLOUD_LISTEN=server-1:20000"));
  EXPECT_THAT(variables, Contains("PYTHONUNBUFFERED=0"));
  EXPECT_THAT(variables, Not(Contains("PYTHONUNBUFFERED=1")));
  EXPECT_THAT(variables, Contains(R"(TEMPLATE={{"{{"}}.Node.ID}})"));
}

TEST(SwarmSpec, SecretsAreFilesOfTheirOwner) {
  const Plan plan = swarm_plan();
  SwarmOptions options;
  options.user = "1000:100";
  const JsonValue service = service_of(plan, {TaskRole::kServer, 0}, options);
  const JsonValue& container = service["TaskTemplate"]["ContainerSpec"];
  const JsonValue& file = container["Secrets"].items().at(0)["File"];
  EXPECT_EQ(file["Name"].text(), "/run/secrets/TOKEN");
  EXPECT_EQ(file["Mode"].integer(), 0400);
  EXPECT_EQ(file["UID"].text(), "1000");
  EXPECT_EQ(file["GID"].text(), "100");
  EXPECT_EQ(container["User"].text(), "1000:100");
  const auto variables = json_texts(container["Env"]);
  EXPECT_THAT(variables, Contains("TOKEN_FILE=/run/secrets/TOKEN"));
  EXPECT_THAT(variables, Contains("PSCLOUD_TLS_DIR=/run/secrets/tls"));
  EXPECT_THAT(variables, Not(Contains(HasSubstr("very secret"))));
}

TEST(SwarmSpec, OnTheNodesNetworkAServiceHasItsNodeAndTellsItsPort) {
  const Plan plan = swarm_plan();
  const TaskId id{TaskRole::kServer, 0};
  const ContainerTask container = container_task(plan, swarm_view(plan), *plan.find(id));
  SwarmOptions options;
  options.host_network = true;
  const JsonValue service = JsonValue::parse(swarm_service_json(plan, *plan.find(id), container, options,
                                                                {"host", "n1", {"10.0.0.1", 21000}}, {}, {}))
                                .value();
  EXPECT_EQ(service["Labels"]["pscloud.port"].text(), "21000");
  EXPECT_EQ(json_texts(service["TaskTemplate"]["Placement"]["Constraints"]), std::vector<std::string>{"node.id==n1"});
  EXPECT_TRUE(service["TaskTemplate"]["ContainerSpec"]["Hostname"].is(JsonValue::Kind::kNull));
}

TEST(SwarmSpec, OptionsAreChecked) {
  Cluster cluster;
  for (const auto& [name, value] : Variables{{"network", "bridge"},
                                             {"port", "0"},
                                             {"user", "bob"},
                                             {"init", "maybe"},
                                             {"mount", "relative:x"},
                                             {"mount", "/a:/b:/c"}}) {
    cluster.options = {{name, value}};
    const auto options = read_swarm_options(cluster);
    ASSERT_FALSE(options) << name;
    EXPECT_THAT(options.error().message, HasSubstr(name + "=" + value));
  }
  cluster.options = {{"network", "host"}, {"port", "7000"},   {"user", "1:2"},
                     {"init", "off"},     {"mount", "/data"}, {"mount", "vol:/v:ro"}};
  const SwarmOptions options = read_swarm_options(cluster).value();
  EXPECT_TRUE(options.host_network);
  EXPECT_EQ(options.port, 7000);
  EXPECT_FALSE(options.init);
  ASSERT_EQ(options.mounts.size(), 2u);
  EXPECT_EQ(options.mounts[0].target, "/data");
  EXPECT_TRUE(options.mounts[1].read_only);
  EXPECT_FALSE(options.mounts[1].is_path());
}

}  // namespace
}  // namespace pscloud
