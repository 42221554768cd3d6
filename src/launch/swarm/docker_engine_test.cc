#include "launch/swarm/docker_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "io/scripted_http_server.h"
#include "launch/swarm/registry_auth.h"

namespace pscloud {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class DockerEngineTest : public testing::Test {
 protected:
  DockerEngineTest() : folder_(testing::TempDir() + "docker_engine_test." + std::to_string(::getpid())) {
    std::filesystem::create_directory(folder_);
    for (const char* name : {"DOCKER_HOST", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH", "DOCKER_CONFIG"}) ::unsetenv(name);
  }
  ~DockerEngineTest() override {
    for (const char* name : {"DOCKER_HOST", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH", "DOCKER_CONFIG"}) ::unsetenv(name);
    std::filesystem::remove_all(folder_);
  }

  void write(const std::string& name, const std::string& text) const {
    FILE* file = std::fopen((folder_ + "/" + name).c_str(), "w");
    std::fputs(text.c_str(), file);
    std::fclose(file);
  }

  const std::string folder_;
};

TEST_F(DockerEngineTest, IsFoundAsDockerFindsIt) {
  EXPECT_EQ(find_engine("").value().http.unix_socket, "/var/run/docker.sock");
  ::setenv("DOCKER_HOST", "unix:///some/where.sock", 1);
  EXPECT_EQ(find_engine("").value().http.unix_socket, "/some/where.sock");
  EXPECT_EQ(find_engine("unix:///else.sock").value().http.unix_socket, "/else.sock");
  EXPECT_TRUE(find_engine("ssh://me@host:22").value().http.carry);
  EXPECT_EQ(find_engine("tcp://127.0.0.1:2375").value().url, "http://127.0.0.1:2375");
}

TEST_F(DockerEngineTest, TcpNeedsProofOfBothSides) {
  EXPECT_THAT(find_engine("tcp://10.0.0.1:2376").error().message, HasSubstr("DOCKER_TLS_VERIFY=1"));
  ::setenv("DOCKER_CERT_PATH", folder_.c_str(), 1);
  EXPECT_THAT(find_engine("tcp://10.0.0.1").error().message, HasSubstr("no ca.pem"));
  for (const char* name : {"ca.pem", "cert.pem", "key.pem"}) write(name, name);
  const EngineAddress engine = find_engine("tcp://10.0.0.1").value();
  EXPECT_EQ(engine.url, "https://10.0.0.1:2376");
  EXPECT_EQ(engine.http.ca_pem, "ca.pem");
  EXPECT_EQ(engine.http.certificate_pem, "cert.pem");
  EXPECT_EQ(engine.http.key_pem, "key.pem");
}

TEST_F(DockerEngineTest, WhatIsNoAddressIsNamed) {
  for (const char* host : {"docker", "unix://relative", "ssh://", "ssh://-oProxyCommand=x", "ssh://a b", "ssh://h:0",
                           "ssh://h;reboot", "tcp://", "http://x"}) {
    const auto engine = find_engine(host);
    ASSERT_FALSE(engine) << host;
    EXPECT_EQ(engine.error().code, Code::kInvalid);
    EXPECT_THAT(engine.error().message, HasSubstr(host));
  }
}

TEST_F(DockerEngineTest, ErrorsHaveTheEnginesOwnWords) {
  ScriptedHttpServer server(
      [](const std::string& request) {
        if (request.starts_with("GET /nothing"))
          return ScriptedHttpServer::text(404, R"({"message":"no such thing."})");
        if (request.starts_with("DELETE")) return ScriptedHttpServer::text(404, "");
        if (request.starts_with("POST /images/load")) {
          return ScriptedHttpServer::text(200, "{\"stream\":\"x\"}\n{\"error\":\"no space left\"}\n");
        }
        return ScriptedHttpServer::text(409, R"({"message":"name conflicts"})");
      },
      folder_ + "/sock");
  DockerEngine engine(find_engine("unix://" + folder_ + "/sock").value());
  const auto nothing = engine.get("/nothing", {{"filters", engine_filter("label", "a=b")}});
  EXPECT_EQ(nothing.error().code, Code::kNotFound);
  EXPECT_THAT(nothing.error().message, HasSubstr("GET /nothing: no such thing"));
  EXPECT_THAT(server.requests().at(0), HasSubstr("filters=%7B%22label%22%3A%5B%22a%3Db%22%5D%7D"));
  const auto made = engine.post("/services/create", "{}");
  EXPECT_EQ(made.error().code, Code::kInvalid);
  EXPECT_THAT(made.error().message, HasSubstr("name conflicts"));
  EXPECT_TRUE(engine.remove("/services/x"));
  EXPECT_THAT(engine.load_image("tar").error().message, HasSubstr("no space left"));
}

TEST_F(DockerEngineTest, AnImageIsPushedByItsTagWithTheLoginOfItsRegistry) {
  bool refuses = false;
  ScriptedHttpServer server(
      [&](const std::string&) {
        // The status is sent before the registry is asked.
        return ScriptedHttpServer::text(
            200, refuses ? "{\"status\":\"Preparing\"}\n{\"errorDetail\":{\"message\":\"denied\"},"
                           "\"error\":\"denied: access forbidden\"}\n"
                         : "{\"status\":\"Pushed\"}\n{\"aux\":{\"Tag\":\"7\"}}\n");
      },
      folder_ + "/sock");
  DockerEngine engine(find_engine("unix://" + folder_ + "/sock").value());
  const auto pushed = engine.push_image("r.example:5000/team/ps", "7", "bG9naW4=");
  EXPECT_TRUE(pushed) << pushed.error().message;
  const std::string request = server.requests().at(0);
  EXPECT_THAT(request, StartsWith("POST /images/r.example%3A5000/team/ps/push?tag=7 "));
  EXPECT_THAT(request, testing::ContainsRegex("[Xx]-[Rr]egistry-[Aa]uth: bG9naW4="));
  refuses = true;
  const auto refused = engine.push_image("r.example:5000/team/ps", "7", "bG9naW4=");
  EXPECT_EQ(refused.error().code, Code::kFailed);
  EXPECT_THAT(refused.error().message, HasSubstr("does not push r.example:5000/team/ps:7: denied: access forbidden"));
}

// The engine had made it, and its answer was lost: it is found by its name.
TEST_F(DockerEngineTest, WhatAFirstTryHasMadeIsTaken) {
  int posts = 0;
  ScriptedHttpServer server(
      [&](const std::string& request) {
        if (request.starts_with("GET /services/mine ")) return ScriptedHttpServer::text(200, R"({"ID":"s1"})");
        return ++posts == 1 ? ScriptedHttpServer::text(503, "")
                            : ScriptedHttpServer::text(409, R"({"message":"conflict"})");
      },
      folder_ + "/sock");
  DockerEngine engine(find_engine("unix://" + folder_ + "/sock").value());
  const auto made = engine.post("/services/create", R"({"Name":"mine"})");
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ((*made)["ID"].text(), "s1");
  // One that was there before the first try is another's.
  EXPECT_FALSE(engine.post("/services/create", R"({"Name":"mine"})"));
}

TEST_F(DockerEngineTest, LogsInToRegistriesAsTheUserHas) {
  ::setenv("DOCKER_CONFIG", folder_.c_str(), 1);
  EXPECT_EQ(registry_auth("r.example").value(), "e30=");                           // {}
  write("config.json", R"({"auths":{"r.example":{"auth":"bWU6cGFzczp3b3Jk"}}})");  // me:pass:word
  EXPECT_EQ(registry_auth("other.example").value(), "e30=");
  // echo -n '{"username":"me","password":"pass:word","serveraddress":"r.example"}' | base64
  EXPECT_THAT(
      registry_auth("r.example").value(),
      StartsWith("eyJ1c2VybmFtZSI6Im1lIiwicGFzc3dvcmQiOiJwYXNzOndvcmQiLCJzZXJ2ZXJhZGRyZXNzIjoici5leGFtcGxlIn0"));
}

}  // namespace
}  // namespace pscloud
