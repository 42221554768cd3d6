#include "io/http_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>

#include "base/log.h"
#include "io/http_client_streams.h"
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

TEST_F(HttpClientTest, SpeaksThroughASocketOfTheFileSystem) {
  const std::string path = testing::TempDir() + "http_client_test." + std::to_string(::getpid());
  ScriptedHttpServer server([](const std::string&) { return ScriptedHttpServer::text(200, "here"); }, path);
  HttpClient client({.unix_socket = path});
  EXPECT_EQ(client.send({.url = "http://nowhere.invalid/a"}).value().body, "here");
  EXPECT_THAT(server.requests().at(0), StartsWith("GET /a HTTP/1.1\r\nHost: nowhere.invalid\r\n"));
  ::unlink(path.c_str());
  HttpClient late({.tries = 1, .unix_socket = path, .peer = "the engine"});
  EXPECT_THAT(late.send({.url = "http://nowhere.invalid/a"}).error().message,
              StartsWith("the engine cannot be reached"));
}

TEST_F(HttpClientTest, SpeaksThroughConnectionsThatOthersCarry) {
  std::vector<std::jthread> servers;  // they end when the client has closed what it kept, before them
  HttpClient client({.carry = [&](Fd connection) -> Result<> {
    servers.emplace_back([fd = std::move(connection)] {
      char buffer[4096];
      const std::string answer = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhere";
      while (::recv(fd.get(), buffer, sizeof buffer, 0) > 0) {
        CHECK(::send(fd.get(), answer.data(), answer.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(answer.size()));
      }
    });
    return {};
  }});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.send({.url = "http://nowhere.invalid/"}).value().body, "here");
  EXPECT_EQ(servers.size(), 1u);  // it is used again
  HttpClient lonely({.tries = 1, .carry = [](const Fd&) -> Result<> { return unavailable("no ssh"); }});
  EXPECT_THAT(lonely.send({.url = "http://nowhere.invalid/"}).error().message, HasSubstr("no ssh"));
}

TEST_F(HttpClientTest, StreamsComeAsTheyAreAndEnd) {
  ScriptedHttpServer server([](const std::string& request) {
    return ScriptedHttpServer::text(request.starts_with("GET /bad") ? 404 : 200, "lines\n");
  });
  HttpStreams streams({});
  const uint64_t good = streams.open({.url = server.url() + "/good"});
  const uint64_t bad = streams.open({.url = server.url() + "/bad"});
  const uint64_t closed = streams.open({.url = server.url() + "/good"});
  streams.close(closed);
  std::map<uint64_t, std::string> bytes;
  std::map<uint64_t, int> ended;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (ended.size() < 2 && std::chrono::steady_clock::now() < deadline) {
    for (const HttpStreams::Event& event : streams.wait(deadline, -1)) {
      bytes[event.stream] += event.bytes;
      if (event.ended) ended[event.stream] = event.status;
      EXPECT_EQ(event.error, "");
    }
  }
  EXPECT_THAT(ended, testing::ElementsAre(testing::Pair(good, 200), testing::Pair(bad, 404)));
  EXPECT_EQ(bytes[good], "lines\n");
}

TEST_F(HttpClientTest, AWaitForStreamsEndsWhenItIsWoken) {
  HttpStreams streams({});
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const Fd read_end(ends[0]);
  const Fd write_end(ends[1]);
  ASSERT_EQ(::write(write_end.get(), "x", 1), 1);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(streams.wait(start + std::chrono::seconds(60), read_end.get()).empty());
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
}

TEST(HttpUrl, HasAHost) {
  EXPECT_EQ(host_of("https://example.com:8443/a?b"), "example.com:8443");
  EXPECT_EQ(host_of("http://example.com?b"), "example.com");
}

}  // namespace
}  // namespace pscloud
