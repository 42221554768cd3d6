#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pscloud/node.h"

namespace pscloud {
namespace {

using testing::HasSubstr;

NodeOptions good() {
  NodeOptions options;
  options.role = Role::kServer;
  options.scheduler = "127.0.0.1:4000";
  options.insecure = true;
  return options;
}

// The error after `change`; "ok" if there is none.
template <class Change>
std::string error_after(Change change) {
  NodeOptions options = good();
  change(options);
  const auto result = validate(options);
  if (result) return "ok";
  EXPECT_EQ(result.error().code, Code::kInvalid);
  return result.error().message;
}

TEST(NodeOptions, DefaultsNeedOnlyASchedulerAndAChoiceOfSecurity) {
  EXPECT_EQ(error_after([](NodeOptions&) {}), "ok");
}

TEST(NodeOptions, TheSchedulerMustBeAnAddress) {
  EXPECT_THAT(error_after([](NodeOptions& o) { o.scheduler = ""; }), HasSubstr("--scheduler or PSCLOUD_SCHEDULER"));
  EXPECT_THAT(error_after([](NodeOptions& o) { o.scheduler = "4000"; }), HasSubstr("scheduler: "));
  EXPECT_THAT(error_after([](NodeOptions& o) { o.scheduler = "127.0.0.1:0"; }), HasSubstr("port 0"));
  EXPECT_EQ(error_after([](NodeOptions& o) {
              o.scheduler = "127.0.0.1:0";
              o.role = Role::kScheduler;
            }),
            "ok");
}

TEST(NodeOptions, InprocNeedsItsNetworkAndNothingElse) {
  EXPECT_THAT(error_after([](NodeOptions& o) { o.scheduler = "inproc:a"; }), HasSubstr("LocalNetwork"));
  EXPECT_EQ(error_after([](NodeOptions& o) {
              o.scheduler = "inproc:a";
              // Any pointer that is not null will do: it is not followed.
              o.local = std::shared_ptr<LocalNetwork>(std::make_shared<int>(), reinterpret_cast<LocalNetwork*>(&o));
              o.insecure = false;
            }),
            "ok");
}

TEST(NodeOptions, OtherAddressesMustParse) {
  EXPECT_THAT(error_after([](NodeOptions& o) { o.listen = "x"; }), HasSubstr("listen: "));
  EXPECT_THAT(error_after([](NodeOptions& o) { o.http = "x"; }), HasSubstr("http: "));
  EXPECT_THAT(error_after([](NodeOptions& o) { o.http = "unix:/run/x"; }), HasSubstr("http: "));
}

TEST(NodeOptions, OneOfCertificatesAndPlaintextIsChosen) {
  EXPECT_THAT(error_after([](NodeOptions& o) { o.insecure = false; }), HasSubstr("pscloud ca"));
  EXPECT_THAT(error_after([](NodeOptions& o) { o.tls_dir = "/tls"; }), HasSubstr("both insecure and tls_dir"));
  EXPECT_EQ(error_after([](NodeOptions& o) {
              o.insecure = false;
              o.tls_dir = "/tls";
              o.scheduler = "example.org:4000";
              o.listen = "0.0.0.0:0";
            }),
            "ok");
}

TEST(NodeOptions, PlaintextStaysOnPrivateAddresses) {
  EXPECT_EQ(error_after([](NodeOptions& o) { o.scheduler = "192.168.1.2:4000"; }), "ok");
  for (const char* host : {"8.8.8.8:4000", "example.org:4000", "0.0.0.0:4000"}) {
    EXPECT_THAT(error_after([host](NodeOptions& o) { o.scheduler = host; }), HasSubstr("plaintext is refused"));
    EXPECT_THAT(error_after([host](NodeOptions& o) { o.listen = host; }), HasSubstr("plaintext is refused"));
  }
  EXPECT_THAT(error_after([](NodeOptions& o) { o.advertise = "8.8.8.8"; }), HasSubstr("advertise is at 8.8.8.8"));
}

TEST(NodeOptions, CountsHaveBounds) {
  EXPECT_THAT(error_after([](NodeOptions& o) { o.servers = 0; }), HasSubstr("servers is 0: choose"));
  EXPECT_THAT(error_after([](NodeOptions& o) { o.owners = 257; }), HasSubstr("owners is 257: choose"));
  EXPECT_THAT(error_after([](NodeOptions& o) { o.workers = 0; }), HasSubstr("workers is 0"));
  EXPECT_THAT(error_after([](NodeOptions& o) { o.workers = 20000; }), HasSubstr("workers is 20000"));
  EXPECT_THAT(error_after([](NodeOptions& o) { o.rank = -2; }), HasSubstr("rank is -2"));
  EXPECT_THAT(error_after([](NodeOptions& o) { o.memory_max = 0; }), HasSubstr("memory_max is 0"));
  EXPECT_THAT(error_after([](NodeOptions& o) { o.queue_bytes_max = 0; }), HasSubstr("queue_bytes_max is 0"));
  EXPECT_THAT(error_after([](NodeOptions& o) {
                o.servers = 2;
                o.owners = 129;
              }),
              HasSubstr("258 owners: a job has at most 256"));
}

TEST(NodeOptions, TheJobBeginsWithNoMoreWorkersThanItHas) {
  EXPECT_THAT(error_after([](NodeOptions& o) { o.workers_min = 2; }), HasSubstr("workers_min is 2"));
  EXPECT_EQ(error_after([](NodeOptions& o) { o.workers = o.workers_min = 2; }), "ok");
}

TEST(NodeOptions, TimesArePositiveAndAHeartbeatFitsBeforeDeath) {
  EXPECT_THAT(error_after([](NodeOptions& o) { o.join_timeout_ms = 0; }), HasSubstr("join_timeout_ms is 0"));
  EXPECT_THAT(error_after([](NodeOptions& o) { o.request_timeout_ms = -1; }), HasSubstr("request_timeout_ms is -1"));
  EXPECT_THAT(error_after([](NodeOptions& o) { o.stop_timeout_ms = 0; }), HasSubstr("stop_timeout_ms is 0"));
  EXPECT_THAT(error_after([](NodeOptions& o) { o.restart_wait_ms = -1; }), HasSubstr("restart_wait_ms is -1"));
  EXPECT_EQ(error_after([](NodeOptions& o) { o.restart_wait_ms = 0; }), "ok");
  EXPECT_THAT(error_after([](NodeOptions& o) { o.heartbeat_ms = o.death_timeout_ms; }),
              HasSubstr("make the heartbeat shorter"));
}

TEST(NodeOptions, AJobHasAName) {
  EXPECT_THAT(error_after([](NodeOptions& o) { o.job = ""; }), HasSubstr("job has 0 bytes"));
  EXPECT_THAT(error_after([](NodeOptions& o) { o.job = std::string(201, 'x'); }), HasSubstr("1 to 200"));
}

}  // namespace
}  // namespace pscloud
