#include "launch/kubernetes/kube_manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/base64.h"
#include "base/json_value.h"
#include "io/scripted_http_server.h"
#include "launch/backend.h"
#include "launch/kubernetes/kube_api.h"
#include "launch/kubernetes/kube_log.h"

namespace pscloud {
namespace {

TEST(KubeApi, ATokenThatWasRenewedIsReadAgain) {
  ScriptedHttpServer server([](const std::string& request) {
    const bool known = request.find("authorization: Bearer new") != std::string::npos;
    return known ? ScriptedHttpServer::text(200, "{}") : ScriptedHttpServer::text(401, R"({"message":"Unauthorized"})");
  });
  KubeAccess access;
  access.server = server.url();
  access.token = "old";
  access.http.proxy = false;
  EXPECT_EQ(KubeApi(access).get("/x").error().code, Code::kInvalid);
  int found = 0;
  KubeApi api(access, [&]() -> Result<KubeAccess> {
    ++found;
    KubeAccess renewed = access;
    renewed.token = "new";
    return renewed;
  });
  EXPECT_TRUE(api.get("/x"));
  EXPECT_TRUE(api.get("/x"));
  EXPECT_EQ(found, 1);
}

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Plan kube_plan(Framework framework = Framework::kTensorflow) {
  Job job;
  job.run = "a-very-long-name-of-a-run-that-is-cut";
  job.framework = framework;
  job.stop_grace_ms = 1500;
  for (const auto& [role, count] : {std::pair(TaskRole::kServer, 2), std::pair(TaskRole::kWorker, 12)}) {
    RoleSpec spec;
    spec.role = role;
    spec.image = "team/trainer:1";
    spec.count = count;
    job.roles.push_back(spec);
  }
  job.roles[1].commands = {{"train", "$(HOME) a b"}};
  job.environment = {{"MONEY", "$$(5)"}};
  job.secrets = {{.name = "secrets/TOKEN", .content = "very secret", .variable = "TOKEN_FILE"}};
  Cluster cluster;
  cluster.target = "kubernetes";
  return make_plan(job, cluster, "j0123456789a").value();
}

// What a pod with this number would get, as Kubernetes expands it.
std::string expanded(std::string_view text, int index) {
  std::string result;
  constexpr std::string_view kHole = "$(PSCLOUD_POD_INDEX)";
  while (!text.empty()) {
    if (text.starts_with("$$")) {
      result += '$';
      text.remove_prefix(2);
    } else if (text.starts_with(kHole)) {
      result += std::to_string(index);
      text.remove_prefix(kHole.size());
    } else {
      result += text.front();
      text.remove_prefix(1);
    }
  }
  return result;
}

JsonValue object_of(const std::vector<KubeObject>& objects, std::string_view kind, std::string_view name_end = "") {
  for (const KubeObject& object : objects) {
    JsonValue json = JsonValue::parse(object.json).value();
    if (json["kind"].text() == kind && json["metadata"]["name"].text().ends_with(name_end)) return json;
  }
  ADD_FAILURE() << "no " << kind;
  return {};
}

TEST(KubeManifest, EachPodGetsWhatItsTaskShouldHave) {
  const Plan plan = kube_plan();
  const KubeOptions options;
  const auto objects = kube_objects(plan, options, {}, false).value();
  const ClusterView view = kube_view(plan, options);
  for (const auto& [kind, role] : {std::pair("StatefulSet", TaskRole::kServer), std::pair("Job", TaskRole::kWorker)}) {
    const JsonValue object = object_of(objects, kind);
    const JsonValue& container = object["spec"]["template"]["spec"]["containers"].items().at(0);
    for (const PlannedTask& task : plan.tasks) {
      if (task.spec.id.role != role) continue;
      const ContainerTask wanted = container_task(plan, view, task);
      Variables got;
      for (const JsonValue& variable : container["env"].items()) {
        if (variable["value"].is(JsonValue::Kind::kNull)) continue;
        got.emplace_back(variable["name"].text(), expanded(variable["value"].text(), task.spec.id.index));
      }
      EXPECT_EQ(got, wanted.variables);
    }
  }
  const JsonValue worker = object_of(objects, "Job");
  EXPECT_EQ(worker["spec"]["template"]["spec"]["containers"].items()[0]["args"].items()[1].text(), "$$(HOME) a b");
}

TEST(KubeManifest, ServersLiveAndWorkersComeToAnEnd) {
  const Plan plan = kube_plan();
  const auto objects = kube_objects(plan, {}, {}, false).value();
  const JsonValue servers = object_of(objects, "StatefulSet");
  EXPECT_EQ(servers["metadata"]["name"].text(), "a-very-long-name-of-a-ru-j0123456789a-server");
  EXPECT_EQ(servers["spec"]["serviceName"].text(), object_of(objects, "Service")["metadata"]["name"].text());
  EXPECT_EQ(servers["spec"]["replicas"].integer(), 2);
  const JsonValue workers = object_of(objects, "Job");
  EXPECT_EQ(workers["spec"]["completionMode"].text(), "Indexed");
  EXPECT_EQ(workers["spec"]["completions"].integer(), 12);
  EXPECT_EQ(workers["spec"]["template"]["spec"]["restartPolicy"].text(), "Never");
  EXPECT_EQ(workers["spec"]["template"]["spec"]["terminationGracePeriodSeconds"].integer(), 2);
  for (const KubeObject& object : objects) {
    EXPECT_EQ(JsonValue::parse(object.json).value()["metadata"]["labels"]["pscloud.job"].text(), "j0123456789a");
  }
}

TEST(KubeManifest, SecretsAreFilesAndLeftOutOfWhatIsShown) {
  const Plan plan = kube_plan();
  const auto objects = kube_objects(plan, {}, {}, false).value();
  EXPECT_EQ(object_of(objects, "Secret", "worker")["data"]["file0"].text(), base64("very secret"));
  const JsonValue workers = object_of(objects, "Job");
  const JsonValue& volume = workers["spec"]["template"]["spec"]["volumes"].items().at(0)["secret"];
  EXPECT_EQ(volume["defaultMode"].integer(), 0400);
  EXPECT_EQ(volume["items"].items().at(0)["path"].text(), "TOKEN");
  const std::string shown = kube_list(kube_objects(plan, {}, {}, true).value());
  EXPECT_THAT(shown, Not(HasSubstr(base64("very secret"))));
  EXPECT_TRUE(JsonValue::parse(shown));
}

TEST(KubeManifest, TasksThatDifferHaveNoTemplate) {
  Plan plan = kube_plan();
  plan.tasks.back().spec.command = {"other"};
  EXPECT_THAT(kube_objects(plan, {}, {}, false).error().message, HasSubstr("the workers differ in their commands"));
}

TEST(KubeManifest, ATemplateHasTheNumberInItsPlaces) {
  EXPECT_EQ(index_template({"w-0:7", "w-1:7", "w-2:7"}, "I"), "w-$(I):7");
  EXPECT_EQ(index_template({"x"}, "I"), "x");
  EXPECT_EQ(index_template({"a$(b)", "a$(b)"}, "I"), "a$$(b)");
  EXPECT_EQ(index_template({"3", "4"}, "I"), std::nullopt);
  EXPECT_EQ(index_template({"a0", "b1"}, "I"), std::nullopt);
  EXPECT_EQ(index_template({"$0", "$1"}, "I"), "$$$(I)");
}

TEST(KubeAccess, IsWhatAKubeconfigSays) {
  const std::string config = R"({"current-context":"one","contexts":[
      {"name":"one","context":{"cluster":"c","user":"u","namespace":"n"}},
      {"name":"two","context":{"cluster":"c","user":"e"}},
      {"name":"three","context":{"cluster":"loose","user":"u"}}],
      "clusters":[{"name":"c","cluster":{"server":"https://h:6443/","certificate-authority-data":"Q0E="}},
                  {"name":"loose","cluster":{"server":"https://h","insecure-skip-tls-verify":true}}],
      "users":[{"name":"u","user":{"token":"t","client-certificate-data":"Q0VSVA==","client-key-data":"S0VZ"}},
               {"name":"e","user":{"exec":{"command":"aws"}}}]})";
  const KubeAccess access = parse_kubeconfig(config, "f", "").value();
  EXPECT_EQ(access.server, "https://h:6443");
  EXPECT_EQ(access.token, "t");
  EXPECT_EQ(access.name_space, "n");
  EXPECT_EQ(access.http.ca_pem, "CA");
  EXPECT_EQ(access.http.certificate_pem, "CERT");
  EXPECT_EQ(access.http.key_pem, "KEY");
  EXPECT_THAT(parse_kubeconfig(config, "f", "two").error().message, HasSubstr("kubectl proxy"));
  EXPECT_THAT(parse_kubeconfig(config, "f", "three").error().message, HasSubstr("insecure-skip-tls-verify"));
  EXPECT_THAT(parse_kubeconfig(config, "f", "four").error().message, HasSubstr("no context 'four'"));
  KubeOptions options;
  options.server = "http://10.0.0.1:8001";
  EXPECT_THAT(find_kube(options).error().message, HasSubstr("on loopback"));
}

TEST(KubernetesBackend, AShellIsRefusedWhereKubectlDoesNotKnowTheWay) {
  Cluster cluster;
  cluster.target = "kubernetes";
  cluster.options = {{"server", "http://127.0.0.1:1"}, {"token_file", "/t"}};
  const auto backend = make_backend(cluster, "");
  ASSERT_TRUE(backend) << backend.error().message;
  const auto shell = (*backend)->shell(kube_plan(), {TaskRole::kWorker, 0});
  EXPECT_EQ(shell.error().code, Code::kInvalid);
  EXPECT_THAT(shell.error().message, HasSubstr("kubectl"));
}

TEST(KubeLog, EachLineCountsOnce) {
  KubeLog log({TaskRole::kWorker, 0});
  std::vector<TaskEvent> events;
  log.take("2026-11-17T09:19:19.1Z a\n2026-11-17T09:19:19.2Z b\n2026-11-17T09:19:19.2Z c", events);
  log.begin_stream();
  log.take("2026-11-17T09:19:19.2Z b\n2026-11-17T09:19:19.2Z c\n2026-11-17T09:19:19.3Z \n2026-11-17T09:19:19.4Z d",
           events);
  log.end(events);
  std::vector<std::string> lines;
  for (const TaskEvent& event : events) lines.push_back(event.text);
  EXPECT_THAT(lines, ElementsAre("a", "b", "c", "", "d"));
}

TEST(KubeLog, OfALongLineThatHadComeInPartTheRestComes) {
  const std::string time = "2026-11-17T09:19:19.1Z ";
  const std::string text(200 << 10, 'x');
  for (const size_t cut : {size_t{10}, size_t{70} << 10, size_t{130} << 10, text.size()}) {
    KubeLog log({TaskRole::kWorker, 0});
    std::vector<TaskEvent> events;
    log.take(time + "a\n" + time + text.substr(0, cut), events);
    log.begin_stream();
    log.take(time + "a\n" + time + text + "\n" + time + "b\n", events);
    std::string all;
    for (const TaskEvent& event : events) all += event.text + (event.continues ? "" : "\n");
    EXPECT_EQ(all, "a\n" + text + "\nb\n") << cut;
  }
}

}  // namespace
}  // namespace pscloud
