#include "io/http_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "base/log.h"
#include "io/scripted_http_server.h"

namespace pscloud {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class HttpClientTest : public testing::Test {
 protected:
  void SetUp() override { set_log_level(LogLevel::kError); }
  void TearDown() override { set_log_level(LogLevel::kInfo); }
};

TEST_F(HttpClientTest, SendsWhatItIsGivenAndNothingElse) {
  ScriptedHttpServer server(
      [](const std::string&) { return ScriptedHttpServer::text(201, "made", "ETag: \"1\"\r\n"); });
  HttpClient client({});
  const auto response = client.send(
      {.method = "PUT", .url = server.url() + "/a/../b%20c?x=", .headers = {{"x-test", "1"}}, .body = "some bytes"});
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->status, 201);
  EXPECT_EQ(response->body, "made");
  EXPECT_EQ(response->header("etag"), "\"1\"");
  EXPECT_EQ(response->header("other"), "");
  const std::string sent = server.requests().at(0);
  EXPECT_THAT(sent, StartsWith("PUT /a/../b%20c?x= HTTP/1.1\r\n"));
  EXPECT_THAT(sent, HasSubstr("\r\nx-test: 1\r\n"));
  EXPECT_THAT(sent, HasSubstr("\r\n\r\nsome bytes"));
  EXPECT_THAT(sent, Not(HasSubstr("Content-Type")));
}

TEST_F(HttpClientTest, TriesAgainAfterResetsAndOverloadAndPreparesEachTry) {
  std::atomic<int> seen = 0;
  ScriptedHttpServer server([&](const std::string&) -> std::string {
    const int number = ++seen;
    if (number == 1) return "";
    if (number == 2) return ScriptedHttpServer::text(503, "slow down");
    return number == 3 ? "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\ncut" : ScriptedHttpServer::text(200, "here");
  });
  HttpClient client({});
  int prepared = 0;
  const auto response = client.send({.url = server.url() + "/"}, [&](HttpRequest& request) -> Result<> {
    request.headers.emplace_back("x-try", std::to_string(++prepared));
    return {};
  });
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->body, "here");
  EXPECT_EQ(response->tries, 4);
  EXPECT_THAT(server.requests().at(3), HasSubstr("x-try: 4"));
}

TEST_F(HttpClientTest, SaysHowOftenItTried) {
  ScriptedHttpServer server([](const std::string&) { return ""; });
  HttpClient client({.tries = 2});
  const auto response = client.send({.url = server.url() + "/"});
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, Code::kUnavailable);
  EXPECT_THAT(response.error().message, StartsWith(std::string(host_of(server.url())) + " cannot be reached: "));
  EXPECT_THAT(response.error().message, HasSubstr("(2 tries)"));
}

TEST_F(HttpClientTest, AnAnswerThatWillNotChangeIsTheAnswer) {
  ScriptedHttpServer server([](const std::string&) { return ScriptedHttpServer::text(403, "no"); });
  HttpClient client({});
  EXPECT_EQ(client.send({.url = server.url()}).value().status, 403);
  EXPECT_EQ(server.requests().size(), 1u);
}

TEST_F(HttpClientTest, ALongAnswerIsRefused) {
  ScriptedHttpServer server([](const std::string&) { return ScriptedHttpServer::text(200, std::string(101, 'x')); });
  HttpClient client({});
  EXPECT_EQ(client.send({.url = server.url(), .response_bytes_max = 101}).value().body.size(), 101u);
  EXPECT_EQ(client.send({.url = server.url(), .response_bytes_max = 100}).error().code, Code::kCorrupt);
}

TEST_F(HttpClientTest, RedirectionsAreFollowedOnlyIfAskedFor) {
  ScriptedHttpServer server([](const std::string& request) {
    return request.starts_with("GET /new") ? ScriptedHttpServer::text(200, "there")
                                           : ScriptedHttpServer::text(302, "", "Location: /new\r\n");
  });
  HttpClient client({});
  EXPECT_EQ(client.send({.url = server.url() + "/old"}).value().status, 302);
  EXPECT_EQ(client.send({.url = server.url() + "/old", .follow = true}).value().body, "there");
}

TEST_F(HttpClientTest, AServerThatSaysNothingIsNamed) {
  std::atomic<bool> over = false;
  ScriptedHttpServer server([&](const std::string&) -> std::string {
    over.wait(false);
    return "";
  });
  HttpClient client({.tries = 1, .total_timeout = std::chrono::milliseconds(50)});
  const auto response = client.send({.url = server.url()});
  over = true;
  over.notify_all();
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, Code::kTimeout);
  EXPECT_THAT(response.error().message, StartsWith(std::string(host_of(server.url()))));
}

TEST_F(HttpClientTest, EndsWhenTheUserWantsNoMore) {
  std::atomic<bool> cancelled = false;
  ScriptedHttpServer server([&](const std::string&) {
    cancelled = true;
    return ScriptedHttpServer::text(503, "");
  });
  HttpClient client({.cancelled = [&] { return cancelled.load(); }});
  EXPECT_EQ(client.send({.url = server.url()}).error().code, Code::kFailed);
  EXPECT_EQ(server.requests().size(), 1u);
  cancelled = false;
  HttpClient patient({.tries = 2, .cancelled = [&] { return cancelled.load(); }});
  EXPECT_EQ(patient.send({.url = server.url(), .must_end = true}).value().status, 503);
}

TEST(HttpUrl, HasAHost) {
  EXPECT_EQ(host_of("https://example.com:8443/a?b"), "example.com:8443");
  EXPECT_EQ(host_of("http://example.com?b"), "example.com");
}

}  // namespace
}  // namespace pscloud
