#include "launch/cloud/aws_api.h"

#include <gmock/gmock.h>

#include <future>
#include <map>
#include <set>

#include "io/scripted_http_server.h"
#include "launch/cloud/cloud_prices.h"
#include "launch/cloud/cloud_sweep.h"

namespace pscloud {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

AwsVariables test_variables(std::map<std::string, std::string> more) {
  std::map<std::string, std::string> variables{{"AWS_ACCESS_KEY_ID", "KEY"},
                                               {"AWS_SECRET_ACCESS_KEY", "SECRET"},
                                               {"AWS_EC2_METADATA_DISABLED", "true"},
                                               {"AWS_MAX_ATTEMPTS", "3"}};
  variables.merge(more);
  return [variables](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? "" : found->second;
  };
}

AwsApi api_of(const ScriptedHttpServer& server) {
  return AwsApi::open({.environment = test_variables({{"AWS_ENDPOINT_URL", server.url()}})}).value();
}

std::string refusal_answer(int status, const std::string& code, const std::string& message = "") {
  return ScriptedHttpServer::text(status, "<?xml version=\"1.0\"?>\n<Response><Errors><Error><Code>" + code +
                                              "</Code><Message>" + message + "</Message></Error></Errors></Response>");
}

std::string action_of(const std::string& request) {
  const size_t at = request.find("Action=") + 7;
  return request.substr(at, request.find_first_of("& \r\n", at) - at);
}

TEST(AwsApi, ACallIsASignedForm) {
  ScriptedHttpServer server([](const std::string&) { return ScriptedHttpServer::text(200, "<R><a>1</a></R>"); });
  AwsApi api = api_of(server);
  Ec2Form form;
  form.set("VpcId", "vpc-1").filter("tag:x y", {"a&b", "c"}).tags({"subnet"}, {{"Name", "n m"}});
  EXPECT_EQ(api.call("CreateSubnet", form).value().text_of("a"), "1");
  const std::string request = server.requests().at(0);
  EXPECT_TRUE(request.starts_with("POST / HTTP/1.1"));
  EXPECT_THAT(request, HasSubstr("Credential=KEY/"));
  EXPECT_THAT(request, HasSubstr("/us-east-1/ec2/aws4_request"));
  EXPECT_THAT(request, HasSubstr("Filter.1.Name=tag%3Ax+y&Filter.1.Value.1=a%26b&Filter.1.Value.2=c"));
  EXPECT_THAT(request, HasSubstr("TagSpecification.1.ResourceType=subnet&TagSpecification.1.Tag.1.Key=Name"));
  EXPECT_THAT(request, HasSubstr("Version=2016-11-15"));
  EXPECT_EQ(request.find("SECRET"), std::string::npos);
}

TEST(AwsApi, WhatIsThrottledIsRepeatedAndARefusalIsNot) {
  for (const auto& [status, code] : {std::pair(400, "Throttling"), {503, "RequestLimitExceeded"}}) {
    int asked = 0;
    ScriptedHttpServer server([&, status = status, code = code](const std::string&) {
      return ++asked < 3 ? refusal_answer(status, code) : ScriptedHttpServer::text(200, "<R/>");
    });
    EXPECT_TRUE(api_of(server).call("DescribeVpcs")) << code;
    EXPECT_EQ(asked, 3);
    asked = -1000;
    EXPECT_EQ(api_of(server).ask("DescribeVpcs").value().refused, code);
    EXPECT_EQ(asked, -1000 + 3) << status;  // AWS_MAX_ATTEMPTS
  }
  int asked = 0;
  ScriptedHttpServer server([&](const std::string&) {
    ++asked;
    return refusal_answer(400, "InvalidGroup.Duplicate", "it is there");
  });
  const Ec2Answer answer = api_of(server).ask("CreateSecurityGroup").value();
  EXPECT_EQ(answer.refused, "InvalidGroup.Duplicate");
  EXPECT_THAT(answer.error.message, HasSubstr("it is there"));
  EXPECT_EQ(asked, 1);
}

TEST(AwsApi, AnAnswerThatIsLostIsAskedForAgain) {
  int asked = 0;
  ScriptedHttpServer server(
      [&](const std::string&) { return ++asked == 1 ? "" : ScriptedHttpServer::text(200, "<R/>"); });
  EXPECT_TRUE(api_of(server).call("RunInstances"));
  EXPECT_EQ(asked, 2);
}

TEST(AwsApi, ACallThatHangsIsGivenUp) {
  std::promise<void> over;
  ScriptedHttpServer server([future = over.get_future().share()](const std::string&) {
    future.wait();
    return std::string();
  });
  AwsApi api =
      AwsApi::open({.environment = test_variables({{"AWS_ENDPOINT_URL", server.url()}, {"AWS_MAX_ATTEMPTS", "1"}}),
                    .call_timeout = std::chrono::milliseconds(100)})
          .value();
  const auto answer = api.call("RunInstances");
  over.set_value();
  ASSERT_FALSE(answer);
  EXPECT_TRUE(may_pass(answer.error())) << answer.error().message;
}

TEST(AwsApi, ACallThatNamesWhatEc2DoesNotKnowYetIsMadeAgainButNotForEver) {
  int asked = 0;
  int known_at = 3;
  ScriptedHttpServer server([&](const std::string&) {
    return ++asked < known_at ? refusal_answer(400, "InvalidGroup.NotFound") : ScriptedHttpServer::text(200, "<R/>");
  });
  const auto is_unknown = [](const std::string& code) { return code == "InvalidGroup.NotFound"; };
  AwsApi api = AwsApi::open({.environment = test_variables({{"AWS_ENDPOINT_URL", server.url()}}),
                             .to_be_known = std::chrono::seconds(30)})
                   .value();
  EXPECT_EQ(api.ask_of_new("RunInstances", {}, is_unknown).value().refused, "");
  EXPECT_EQ(asked, 3);
  asked = 0;
  EXPECT_EQ(api.ask_of_new("RunInstances", {}, [](const std::string&) { return false; }).value().refused,
            "InvalidGroup.NotFound");
  EXPECT_EQ(asked, 1);
  known_at = 1000;
  AwsApi hasty = AwsApi::open({.environment = test_variables({{"AWS_ENDPOINT_URL", server.url()}}),
                               .to_be_known = std::chrono::milliseconds(0)})
                     .value();
  EXPECT_EQ(hasty.ask_of_new("RunInstances", {}, is_unknown).value().refused, "InvalidGroup.NotFound");
}

TEST(AwsApi, WhatIsDeniedIsNamed) {
  std::string message = "You are not authorized to perform this operation.";
  ScriptedHttpServer server([&](const std::string&) { return refusal_answer(403, "UnauthorizedOperation", message); });
  AwsApi api = api_of(server);
  EXPECT_THAT(api.call("RunInstances").error().message, HasSubstr("lack the permission ec2:RunInstances;"));
  message = "User: arn:aws:iam::1:user/x is not authorized to perform: iam:PassRole on resource: arn:aws:iam::1:role/y";
  EXPECT_THAT(api.call("RunInstances").error().message, HasSubstr("lack the permission iam:PassRole;"));
}

TEST(AwsApi, ListsAreReadToTheirLastPage) {
  ScriptedHttpServer server([](const std::string& request) {
    const bool second = request.find("NextToken=more") != std::string::npos;
    return ScriptedHttpServer::text(200, second ? "<R><set><item>c</item></set></R>"
                                                : "<R><set><item>a</item><item>b</item></set>"
                                                  "<nextToken>more</nextToken></R>");
  });
  const auto items = api_of(server).list("DescribeVpcs", "set").value();
  ASSERT_EQ(items.size(), 3);
  EXPECT_EQ(items[2].text, "c");
}

TEST(AwsApi, WhatIsNoXmlIsCorrupt) {
  ScriptedHttpServer server([](const std::string&) { return ScriptedHttpServer::text(200, "<html><br></html>"); });
  EXPECT_EQ(api_of(server).call("DescribeVpcs").error().code, Code::kCorrupt);
}

TEST(AwsApi, TheEndpointOfEc2GoesBeforeThatOfAll) {
  const auto open = [](std::map<std::string, std::string> variables, const std::string& flag = "") {
    return AwsApi::open({.environment = test_variables(std::move(variables)), .endpoint = flag}).value().endpoint();
  };
  EXPECT_EQ(open({{"AWS_REGION", "eu-west-1"}}), "https://ec2.eu-west-1.amazonaws.com");
  EXPECT_EQ(open({{"AWS_REGION", "cn-north-1"}}), "https://ec2.cn-north-1.amazonaws.com.cn");
  EXPECT_EQ(open({{"AWS_ENDPOINT_URL", "http://a:1"}, {"AWS_ENDPOINT_URL_EC2", "http://b:2/"}}), "http://b:2");
  EXPECT_EQ(open({{"AWS_ENDPOINT_URL", "http://a:1"}}, "http://c:3"), "http://c:3");
}

TEST(CloudSweep, WhatIsInUseIsTriedAgainUntilItIsGone) {
  int deleted = 0;
  ScriptedHttpServer server([&](const std::string& request) {
    if (action_of(request) == "DeleteSubnet") {
      return ++deleted < 3 ? refusal_answer(400, "DependencyViolation") : ScriptedHttpServer::text(200, "<R/>");
    }
    EXPECT_THAT(request, HasSubstr("Filter.1.Name=tag%3Apscloud%3Aid&Filter.1.Value.1=c0ffee"));
    return ScriptedHttpServer::text(200, deleted < 3 ? "<R><subnetSet><item><subnetId>subnet-1</subnetId>"
                                                       "<state>available</state></item></subnetSet></R>"
                                                     : "<R><subnetSet/></R>");
  });
  AwsApi api = api_of(server);
  const auto now = std::chrono::steady_clock::now();
  EXPECT_TRUE(sweep_things(api, "subnet", "c0ffee", now, {.timeout = std::chrono::seconds(30)}));
  EXPECT_EQ(deleted, 3);
}

TEST(CloudSweep, WhatStaysIsNamedWhenTheTimeIsOver) {
  ScriptedHttpServer server([&](const std::string& request) {
    if (action_of(request) == "DeleteSubnet") return refusal_answer(400, "DependencyViolation", "in use");
    return ScriptedHttpServer::text(200, "<R><subnetSet><item><subnetId>subnet-1</subnetId></item></subnetSet></R>");
  });
  AwsApi api = api_of(server);
  const auto now = std::chrono::steady_clock::now();
  const auto swept = sweep_things(api, "subnet", "c0ffee", now, {.timeout = std::chrono::seconds(0)});
  ASSERT_FALSE(swept);
  EXPECT_EQ(swept.error().code, Code::kTimeout);
  EXPECT_THAT(swept.error().message, HasSubstr("subnet-1"));
  EXPECT_THAT(swept.error().message, HasSubstr("in use"));
}

// EC2 with two machines, which refuses its first `refusals` calls of `action` and is well then.
class SickEc2 {
 public:
  SickEc2(std::string action, int refusals, std::string answer)
      : server_([this, action, refusals, answer](const std::string& request) {
          const std::string asked = action_of(request);
          if (asked == action && ++calls_ <= refusals) return answer;
          if (asked != "TerminateInstances") return list();
          for (const char* id : {"i-1", "i-2"}) {
            if (request.find(id) != std::string::npos) machines_.erase(id);
          }
          return ScriptedHttpServer::text(200, "<R/>");
        }) {}

  Result<> sweep(std::chrono::seconds timeout, std::vector<std::string>* said = nullptr) {
    AwsApi api =
        AwsApi::open({.environment = test_variables({{"AWS_ENDPOINT_URL", server_.url()}, {"AWS_MAX_ATTEMPTS", "1"}})})
            .value();
    const SweepOptions options{.say =
                                   [said](std::string_view line) {
                                     if (said != nullptr) said->emplace_back(line);
                                   },
                               .timeout = timeout};
    return sweep_things(api, "instances", "c0ffee", std::chrono::steady_clock::now(), options);
  }
  const std::set<std::string>& machines() const { return machines_; }

 private:
  std::string list() const {
    std::string items;
    for (const std::string& id : machines_) {
      items += fmt::format(
          "<item><instanceId>{}</instanceId><instanceState><name>running</name></instanceState></item>", id);
    }
    return ScriptedHttpServer::text(
        200, "<R><reservationSet><item><instancesSet>" + items + "</instancesSet></item></reservationSet></R>");
  }

  std::set<std::string> machines_{"i-1", "i-2"};
  int calls_ = 0;
  ScriptedHttpServer server_;  // last: it uses the others
};

TEST(CloudSweep, WhatEc2CannotDoNowIsTriedAgain) {
  const std::string answers[] = {refusal_answer(500, "InternalError"), refusal_answer(400, "Throttling"), ""};
  for (const char* action : {"TerminateInstances", "DescribeInstances"}) {
    for (const std::string& answer : answers) {
      SickEc2 ec2(action, 3, answer);
      std::vector<std::string> said;
      const auto swept = ec2.sweep(std::chrono::seconds(30), &said);
      ASSERT_TRUE(swept) << action << ": " << swept.error().message;
      EXPECT_TRUE(ec2.machines().empty());
      EXPECT_THAT(said, testing::Contains(HasSubstr("it is tried again"))) << action;
    }
  }
}

TEST(CloudSweep, WhatEc2NeverDoesIsNamedWhenTheTimeIsOver) {
  SickEc2 ec2("TerminateInstances", 1000, refusal_answer(500, "InternalError"));
  const auto swept = ec2.sweep(std::chrono::seconds(0));
  ASSERT_FALSE(swept);
  EXPECT_EQ(swept.error().code, Code::kUnavailable);
  EXPECT_THAT(swept.error().message, HasSubstr("machine i-1, i-2 is still there: EC2 TerminateInstances: status 500"));
  SickEc2 blind("DescribeInstances", 1000, refusal_answer(500, "InternalError"));
  EXPECT_THAT(blind.sweep(std::chrono::seconds(0)).error().message, HasSubstr("not known whether a machine is still"));
}

TEST(CloudSweep, ARefusalForGoodIsNotRepeatedAndTheOthersGo) {
  SickEc2 ec2("TerminateInstances", 2, refusal_answer(400, "OperationNotPermitted"));  // of both, then of the first
  const auto swept = ec2.sweep(std::chrono::seconds(30));
  ASSERT_FALSE(swept);
  EXPECT_THAT(swept.error().message, HasSubstr("OperationNotPermitted"));
  EXPECT_THAT(ec2.machines(), ElementsAre("i-1"));
}

TEST(CloudSweep, AllMachinesAreEndedByOneCallAndNotAskedAgainWhileTheyEnd) {
  std::vector<std::string> calls;
  int looks = 0;
  ScriptedHttpServer server([&](const std::string& request) {
    if (action_of(request) == "TerminateInstances") {
      calls.push_back(request);
      return ScriptedHttpServer::text(200, "<R/>");
    }
    const char* state = ++looks == 1 ? "running" : looks < 4 ? "shutting-down" : "terminated";
    std::string items;
    for (const char* id : {"i-1", "i-2", "i-3"}) {
      items += fmt::format("<item><instanceId>{}</instanceId><instanceState><name>{}</name></instanceState></item>", id,
                           state);
    }
    return ScriptedHttpServer::text(
        200, "<R><reservationSet><item><instancesSet>" + items + "</instancesSet></item></reservationSet></R>");
  });
  AwsApi api = api_of(server);
  const SweepOptions options{.timeout = std::chrono::seconds(30), .spared = "i-2"};
  ASSERT_TRUE(sweep_things(api, "instances", "c0ffee", std::chrono::steady_clock::now(), options));
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_THAT(calls[0], HasSubstr("InstanceId.1=i-1&InstanceId.2=i-3&"));
}

// Machines that EC2 has made and does not list; `answer` to a call that ends one, by its number.
Result<> sweep_unlisted(const std::vector<std::string>& ids, std::chrono::milliseconds quiet,
                        const std::function<std::string(int call, const std::string& request)>& answer) {
  int calls = 0;
  ScriptedHttpServer server([&](const std::string& request) {
    if (action_of(request) == "TerminateInstances") return answer(++calls, request);
    return ScriptedHttpServer::text(200, "<R><reservationSet/></R>");
  });
  AwsApi api = api_of(server);
  const SweepOptions options{.timeout = std::chrono::seconds(0), .spared = "i-0", .known = {{"instances", ids}}};
  return sweep_things(api, "instances", "c0ffee", std::chrono::steady_clock::now() + quiet, options);
}

TEST(CloudSweep, WhatIsKnownIsRemovedThoughItIsNotListed) {
  std::string asked;
  EXPECT_TRUE(sweep_unlisted({"i-0", "i-1", "i-2"}, {}, [&](int, const std::string& request) {
    asked += request;
    return ScriptedHttpServer::text(200, "<R/>");
  }));
  EXPECT_THAT(asked, HasSubstr("InstanceId.1=i-1&InstanceId.2=i-2&"));
  EXPECT_THAT(asked, Not(HasSubstr("i-0")));
}

TEST(CloudSweep, WhatIsKnownAndNotListedIsGoneOnlyWhenEc2MustKnowIt) {
  for (const char* code : {"InvalidInstanceID.NotFound", "UnauthorizedOperation"}) {
    const auto began = std::chrono::steady_clock::now();
    int last = 0;
    EXPECT_TRUE(sweep_unlisted({"i-1"}, std::chrono::milliseconds(200), [&](int call, const std::string&) {
      last = call;
      return refusal_answer(400, code);
    }));
    EXPECT_GE(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(200)) << code;
    EXPECT_GE(last, 2) << code;
  }
  const auto swept = sweep_unlisted(
      {"i-1"}, {}, [](int, const std::string&) { return refusal_answer(400, "DependencyViolation", "in use"); });
  ASSERT_FALSE(swept);
  EXPECT_THAT(swept.error().message, HasSubstr("machine i-1 is still there"));
}

TEST(CloudSweep, MachinesAreListedByRoleAndNumber) {
  const auto item = [](const char* id, const char* role, const char* index, const char* state) {
    return fmt::format(
        "<item><instanceId>{}</instanceId><instanceState><name>{}</name></instanceState><amiLaunchIndex>{}"
        "</amiLaunchIndex><privateIpAddress>10.0.0.1</privateIpAddress><tagSet><item><key>pscloud:role</key>"
        "<value>{}</value></item></tagSet></item>",
        id, state, index, role);
  };
  ScriptedHttpServer server([&](const std::string&) {
    return ScriptedHttpServer::text(
        200, fmt::format("<R><reservationSet><item><instancesSet>{}{}</instancesSet></item><item><instancesSet>{}"
                         "</instancesSet></item></reservationSet></R>",
                         item("i-1", "worker", "10", "running"), item("i-9", "worker", "9", "terminated"),
                         item("i-5", "server", "0", "pending")));
  });
  AwsApi api = api_of(server);
  std::vector<std::string> ids;
  const auto instances = list_instances(api, "x").value();
  for (const Ec2Instance& each : instances) ids.push_back(each.id);
  EXPECT_THAT(ids, ElementsAre("i-5", "i-9", "i-1"));
  EXPECT_THAT(list_things(api, "instances", "x").value(), ElementsAre("i-5", "i-1"));
}

TEST(CloudPrices, TheListPriceIsFound) {
  const char* text = R"({"PriceList": ["{\"terms\": {\"OnDemand\": {\"A.B\": {\"priceDimensions\": {\"A.B.C\":
      {\"unit\": \"Hrs\", \"pricePerUnit\": {\"USD\": \"0.1700000000\"}}}}}}}"]})";
  std::string one_line(text);
  std::erase(one_line, '\n');
  EXPECT_DOUBLE_EQ(on_demand_price(JsonValue::parse(one_line).value()).value(), 0.17);
  EXPECT_FALSE(on_demand_price(JsonValue::parse("{}").value()));
}

TEST(CloudPrices, ThePriceListAndTheSpotHistoryAreAsked) {
  ScriptedHttpServer server([](const std::string& request) {
    if (request.find("AWSPriceListService.GetProducts") != std::string::npos) {
      EXPECT_THAT(request, HasSubstr("/us-east-1/pricing/aws4_request"));
      return ScriptedHttpServer::text(400, R"({"__type": "com.amazon#AccessDeniedException", "Message": "no"})");
    }
    return ScriptedHttpServer::text(200,
                                    "<R><spotPriceHistorySet>"
                                    "<item><instanceType>c5.xlarge</instanceType><spotPrice>0.07</"
                                    "spotPrice><timestamp>2026-01-01</timestamp></item>"
                                    "<item><instanceType>c5.xlarge</instanceType><spotPrice>0.08</"
                                    "spotPrice><timestamp>2026-02-01</timestamp></item>"
                                    "</spotPriceHistorySet></R>");
  });
  AwsApi api = api_of(server);
  EXPECT_DOUBLE_EQ(ask_price(api, "c5.xlarge", true, "us-east-1a").dollars.value(), 0.08);
  const CloudPrice unknown = ask_price(api, "c5.xlarge", false, "us-east-1a");
  EXPECT_FALSE(unknown.dollars);
  EXPECT_THAT(unknown.unknown, HasSubstr("lack the permission pricing:GetProducts;"));
}

TEST(CloudPrices, AQuotaCountsWhatRunsOfTheSameFamilyAndMarket) {
  ScriptedHttpServer server([](const std::string& request) {
    if (request.find("GetServiceQuota") != std::string::npos) {
      EXPECT_THAT(request, HasSubstr("L-1216C47A"));
      return ScriptedHttpServer::text(200, R"({"Quota": {"Value": 64.0}})");
    }
    const auto item = [](const char* type, const char* life) {
      return fmt::format(
          "<item><instanceType>{}</instanceType><instanceLifecycle>{}</instanceLifecycle><cpuOptions><coreCount>2"
          "</coreCount><threadsPerCore>2</threadsPerCore></cpuOptions></item>",
          type, life);
    };
    return ScriptedHttpServer::text(
        200, fmt::format("<R><reservationSet><item><instancesSet>{}{}{}</instancesSet></item></reservationSet></R>",
                         item("m5.xlarge", ""), item("c5.xlarge", "spot"), item("p3.2xlarge", "")));
  });
  AwsApi api = api_of(server);
  CloudPlan::Group group;
  static_cast<MachineGroup&>(group) = {"node", 3, "c5.xlarge", false};
  group.what.vcpus = 4;
  const auto quotas = ask_quotas(api, {group});
  ASSERT_EQ(quotas.size(), 1);
  EXPECT_EQ(quotas[0].wanted, 12);
  EXPECT_EQ(quotas[0].limit, 64);
  EXPECT_EQ(quotas[0].used, 4);
}

TEST(CloudPrices, AQuotaThatCannotBeCheckedIsSaidToBe) {
  ScriptedHttpServer server([](const std::string& request) {
    if (request.find("GetServiceQuota") == std::string::npos) return ScriptedHttpServer::text(200, "<R/>");
    return ScriptedHttpServer::text(
        400, R"({"__type": "AccessDeniedException", "message": "User: x is not authorized to perform: )"
             R"(servicequotas:GetServiceQuota on resource: y"})");
  });
  AwsApi api = api_of(server);
  CloudPlan plan;
  plan.groups.resize(2);
  static_cast<MachineGroup&>(plan.groups[0]) = {"server", 1, "c5.xlarge", false};
  static_cast<MachineGroup&>(plan.groups[1]) = {"worker", 3, "quantum9.large", true};
  plan.groups[1].what.vcpus = 4;
  plan.quotas = ask_quotas(api, plan.groups);
  const std::string text = cloud_plan_text(plan);
  EXPECT_THAT(text, HasSubstr("quota    12 vCPUs spot quantum9.large; not checked: it is not known here"));
  EXPECT_THAT(text, HasSubstr("on-demand standard; not checked: denied: the keys (from AWS_ACCESS_KEY_ID) lack the "
                              "permission servicequotas:GetServiceQuota;"));
  EXPECT_TRUE(check_quotas(plan));
}

TEST(CloudPrices, AQuotaIsNotCheckedIfNobodyKnowsWhatRuns) {
  ScriptedHttpServer server([](const std::string& request) {
    if (request.find("GetServiceQuota") == std::string::npos) return refusal_answer(403, "UnauthorizedOperation");
    return ScriptedHttpServer::text(200, R"({"Quota": {"Value": 64.0}})");
  });
  AwsApi api = api_of(server);
  CloudPlan plan;
  plan.groups.resize(1);
  static_cast<MachineGroup&>(plan.groups[0]) = {"node", 3, "c5.xlarge", false};
  plan.quotas = ask_quotas(api, plan.groups);
  EXPECT_THAT(cloud_plan_text(plan), HasSubstr("not checked: it is not known what runs already: denied"));
}

TEST(CloudPrices, FamiliesOfTypes) {
  EXPECT_EQ(quota_family("c5.xlarge"), "standard");
  EXPECT_EQ(quota_family("m7i-flex.large"), "standard");
  EXPECT_EQ(quota_family("p3.2xlarge"), "P");
  EXPECT_EQ(quota_family("g5.xlarge"), "G and VT");
  EXPECT_EQ(quota_family("quantum9.large"), "");
  EXPECT_EQ(quota_family(""), "");
}

}  // namespace
}  // namespace pscloud
