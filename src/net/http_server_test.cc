#include "net/http_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <latch>
#include <stdexcept>
#include <thread>
#include <vector>

#include "net/address.h"

namespace pscloud {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// A client that sends what no library would.
class Client {
 public:
  explicit Client(const HttpServer& server) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(parse_address(server.address())->port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  }
  ~Client() { ::close(socket_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void send(std::string_view text) const {
    EXPECT_EQ(::send(socket_, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }
  // All that comes until the server closes.
  std::string read() const {
    std::string text;
    char part[1024];
    for (ssize_t count = 0; (count = ::recv(socket_, part, sizeof part, 0)) > 0;) {
      text.append(part, static_cast<size_t>(count));
    }
    return text;
  }

 private:
  int socket_;
};

std::string ask(const HttpServer& server, const std::string& line, const std::string& headers = "") {
  const Client client(server);
  client.send(line + " HTTP/1.1\r\nHost: x\r\n" + headers + "\r\n");
  return client.read();
}

class HttpServerTest : public testing::Test {
 protected:
  void SetUp() override {
    HttpRoutes routes;
    routes["/health"] = [] { return HttpReply{.body = "ok\n"}; };
    routes["/status"] = [] { return HttpReply{503, "application/json", R"({"up":false})"}; };
    routes["/throw"] = []() -> HttpReply { throw std::runtime_error("x"); };
    auto started = HttpServer::start("127.0.0.1:0", routes);
    ASSERT_TRUE(started) << started.error().message;
    server_ = *std::move(started);
  }

  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, PortZeroBecomesARealPort) {
  EXPECT_THAT(server_->address(), StartsWith("127.0.0.1:"));
  EXPECT_NE(parse_address(server_->address())->port, 0);
}

TEST_F(HttpServerTest, APathIsAnsweredByItsHandler) {
  const std::string reply = ask(*server_, "GET /health");
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(reply, HasSubstr("Content-Type: text/plain; charset=utf-8\r\n"));
  EXPECT_THAT(reply, EndsWith("\r\n\r\nok\n"));
}

TEST_F(HttpServerTest, StatusTypeAndBodyAreTheHandlers) {
  const std::string reply = ask(*server_, "GET /status?verbose=1");
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(reply, HasSubstr("Content-Type: application/json\r\n"));
  EXPECT_THAT(reply, EndsWith("\r\n\r\n{\"up\":false}"));
}

TEST_F(HttpServerTest, HeadHasTheLengthButNoBody) {
  const std::string reply = ask(*server_, "HEAD /health");
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(reply, HasSubstr("Content-Length: 3\r\n"));
  EXPECT_THAT(reply, EndsWith("\r\n\r\n"));
}

TEST_F(HttpServerTest, AnUnknownPathListsWhatThereIs) {
  const std::string reply = ask(*server_, "GET /helth%0a%1b");
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(reply, EndsWith("there is no /helth\\n\\x1b; there is\n  /health\n  /status\n  /throw\n"));
}

TEST_F(HttpServerTest, NothingCanBeChanged) {
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "PATCH"}) {
    const std::string reply = ask(*server_, std::string(method) + " /health", "Content-Length: 0\r\n");
    EXPECT_THAT(reply, StartsWith("HTTP/1.1 405 ")) << method;
    EXPECT_THAT(reply, HasSubstr("Allow: GET, HEAD\r\n")) << method;
  }
}

TEST_F(HttpServerTest, AHandlerThatThrowsIsA500) {
  testing::internal::CaptureStderr();
  EXPECT_THAT(ask(*server_, "GET /throw"), StartsWith("HTTP/1.1 500 "));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("/throw failed: x"));
  EXPECT_THAT(ask(*server_, "GET /health"), StartsWith("HTTP/1.1 200 "));
}

TEST_F(HttpServerTest, RangesAreNotMultiplied) {
  const std::string reply = ask(*server_, "GET /health", "Range: bytes=0-2,0-2,0-2\r\n");
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(reply, EndsWith("\r\n\r\nok\n"));
}

TEST_F(HttpServerTest, NonsenseIsRefusedAndTheServerLives) {
  for (const std::string text : {"\r\n\r\n", "GET\r\n\r\n", "GET /health HTTP/9.9\r\n\r\n", "\xff\xfe\x01\r\n\r\n"}) {
    const Client client(*server_);
    client.send(text);
    EXPECT_THAT(client.read(), Not(HasSubstr(" 200 "))) << text;
  }
  const Client client(*server_);
  client.send("GET /" + std::string(9000, 'a') + " HTTP/1.1\r\n\r\n");
  EXPECT_THAT(client.read(), StartsWith("HTTP/1.1 414 "));
  EXPECT_THAT(ask(*server_, "GET /health"), StartsWith("HTTP/1.1 200 "));
}

TEST_F(HttpServerTest, StopDoesNotWaitForClientsThatSayNothing) {
  // More than there are threads and places, each in the middle of a request.
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 22; ++i) {
    clients.push_back(std::make_unique<Client>(*server_));
    clients.back()->send("GET /health HT");
  }
  const auto start = std::chrono::steady_clock::now();
  server_->stop();
  server_->stop();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(4));  // the limit of a connection is 5 s
}

TEST_F(HttpServerTest, RequestsAreAnsweredAtTheSameTime) {
  std::latch both(2);
  const auto meet = [&both] {
    both.arrive_and_wait();
    return HttpReply{};
  };
  auto server = HttpServer::start("127.0.0.1:0", {{"/a", meet}, {"/b", meet}});
  ASSERT_TRUE(server);
  std::jthread other([&] { EXPECT_THAT(ask(**server, "GET /a"), StartsWith("HTTP/1.1 200 ")); });
  EXPECT_THAT(ask(**server, "GET /b"), StartsWith("HTTP/1.1 200 "));
}

TEST_F(HttpServerTest, ATakenPortIsAnError) {
  const auto second = HttpServer::start(server_->address(), {});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::kUnavailable);
  EXPECT_THAT(second.error().message, HasSubstr(server_->address()));
}

TEST(HttpServer, AWrongAddressIsAnError) {
  const auto wrong = HttpServer::start("8080", {});
  EXPECT_EQ(wrong.error().code, Code::kInvalid);
}

}  // namespace
}  // namespace pscloud
