#include "launch/host/ssh_connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pscloud {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

Host some_host() {
  Host host;
  host.name = host.address = "10.0.0.1";
  return host;
}

TEST(SshConnection, NeverAsksForAPasswordAndAlwaysChecksTheHostKey) {
  const auto command = ssh_command(some_host(), {}, true);
  EXPECT_THAT(command, Contains("BatchMode=yes"));
  EXPECT_THAT(command, Contains("PreferredAuthentications=publickey"));
  EXPECT_THAT(command, Contains("StrictHostKeyChecking=yes"));
  EXPECT_EQ(command.back(), "10.0.0.1");
  EXPECT_EQ(command.at(command.size() - 2), "--");
  SshOptions options;
  options.accept_new_host_keys = true;
  EXPECT_THAT(ssh_command(some_host(), options, true), Contains("StrictHostKeyChecking=accept-new"));
}

TEST(SshConnection, WhatTheFileSaysOfAHostIsSaidToSsh) {
  Host host = some_host();
  host.user = "ubuntu";
  host.port = 2222;
  host.identity_file = "key.pem";
  SshOptions options;
  options.control_folder = "/run/x";
  const auto command = ssh_command(host, options, false);
  for (const char* word : {"ubuntu", "2222", "key.pem", "IdentitiesOnly=yes", "ControlMaster=no"}) {
    EXPECT_THAT(command, Contains(word));
  }
  EXPECT_THAT(ssh_command(host, {}, false), Not(Contains(HasSubstr("ControlPath"))));
}

TEST(SshConnection, ComplaintsOfSshAreExplained) {
  const auto explain = [](const char* text) { return explain_ssh(some_host(), text, "last line"); };
  EXPECT_THAT(explain("No ED25519 host key is known for 10.0.0.1 and you have requested strict checking."),
              HasSubstr("--accept-new-host-keys"));
  EXPECT_THAT(explain("@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed."),
              HasSubstr("not the one that is known"));
  EXPECT_THAT(explain("x@10.0.0.1: Permission denied (publickey)."), HasSubstr("does not accept the key"));
  EXPECT_EQ(explain("ssh: connect to host 10.0.0.1 port 22: Connection refused"), "last line");
}

}  // namespace
}  // namespace pscloud
