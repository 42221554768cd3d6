#include "net/http_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <latch>
#include <stdexcept>
#include <thread>
#include <vector>

#include "net/address.h"
#include "net/test_certificates.h"

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
  std::string read_until(const std::string& end) const {
    std::string text;
    char byte = 0;
    while (text.find(end) == std::string::npos && ::recv(socket_, &byte, 1, 0) == 1) text += byte;
    return text;
  }
  int socket() const { return socket_; }

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

TEST_F(HttpServerTest, BrowsersAreForbiddenWhatNobodyNeeds) {
  const std::string reply = ask(*server_, "GET /health");
  EXPECT_THAT(reply, HasSubstr("Content-Security-Policy: default-src 'none'; script-src 'self';"));
  EXPECT_THAT(reply, HasSubstr("frame-ancestors 'none'\r\n"));
  EXPECT_THAT(reply, HasSubstr("X-Content-Type-Options: nosniff\r\n"));
  EXPECT_THAT(reply, HasSubstr("Referrer-Policy: no-referrer\r\n"));
}

// A server whose handler is given each call.
std::unique_ptr<HttpServer> serve(HttpHandler handler, const std::string& certificates = "") {
  HttpServerOptions options;
  options.address = "127.0.0.1:0";
  options.body_bytes_max = 100;
  options.streams_max = 2;
  if (!certificates.empty()) {
    options.certificate_file = certificates + "/node.pem";
    options.key_file = certificates + "/node.key";
  }
  auto server = HttpServer::start(options, std::move(handler));
  EXPECT_TRUE(server) << server.error().message;
  return *std::move(server);
}

TEST(HttpCalls, AHandlerSeesWhatWasAsked) {
  HttpCall seen;
  const auto server = serve([&](const HttpCall& call) {
    seen = call;
    return HttpReply{.status = 202, .headers = {{"X-Mine", "1"}}};
  });
  const std::string reply = ask(*server, "POST /a%20b?x=1&y=%2F..%2F", "Content-Length: 4\r\nx-thing: T\r\n\r\nbody");
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 202 "));
  EXPECT_THAT(reply, HasSubstr("X-Mine: 1\r\n"));
  EXPECT_EQ(seen.method, "POST");
  EXPECT_EQ(seen.path, "/a b");
  EXPECT_EQ(seen.body, "body");
  EXPECT_FALSE(seen.secure);
  ASSERT_NE(seen.find_query("y"), nullptr);
  EXPECT_EQ(*seen.find_query("y"), "/../");
  EXPECT_EQ(seen.find_query("z"), nullptr);
  ASSERT_NE(seen.find_header("X-Thing"), nullptr);
  EXPECT_EQ(*seen.find_header("X-Thing"), "T");
}

TEST(HttpCalls, ABodyIsBoundedAndNeverTakenApart) {
  std::string body = "none";
  const auto server = serve([&](const HttpCall& call) {
    body = call.body;
    return HttpReply{};
  });
  EXPECT_THAT(ask(*server, "POST /", "Content-Length: 101\r\n\r\n" + std::string(101, 'x')),
              StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(ask(*server, "POST /", "Content-Length: -1\r\n"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(ask(*server, "POST /", "Transfer-Encoding: chunked\r\n\r\n0\r\n"), StartsWith("HTTP/1.1 411 "));
  EXPECT_EQ(body, "none");
  ask(*server, "POST /", "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 3\r\n\r\na=b");
  EXPECT_EQ(body, "a=b");
  ask(*server, "POST /", "");
  EXPECT_EQ(body, "");
}

TEST(HttpCalls, AStreamArrivesWhileItIsWritten) {
  std::latch read(1);
  const auto server = serve([&](const HttpCall&) {
    HttpReply reply{.content_type = "text/event-stream"};
    reply.stream = [&](HttpStream& out) {
      EXPECT_TRUE(out.write("first\n"));
      read.wait();
      EXPECT_TRUE(out.write("second\n"));
    };
    return reply;
  });
  const Client client(*server);
  client.send("GET / HTTP/1.1\r\nAccept-Encoding: gzip\r\n\r\n");
  EXPECT_THAT(client.read_until("first\n"), HasSubstr("Transfer-Encoding: chunked"));
  read.count_down();
  EXPECT_THAT(client.read(), EndsWith("7\r\nsecond\n\r\n0\r\n\r\n"));
}

TEST(HttpCalls, AStreamOfKnownLengthHasNoMore) {
  const auto server = serve([&](const HttpCall& call) {
    HttpReply reply{.status = 206, .stream_bytes = 6};
    const bool cut = call.path == "/cut";
    reply.stream = [cut](HttpStream& out) { out.write(cut ? "abc" : "abcdef"); };
    return reply;
  });
  const std::string reply = ask(*server, "GET /");
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 206 "));
  EXPECT_THAT(reply, HasSubstr("Content-Length: 6\r\n"));
  EXPECT_THAT(reply, EndsWith("\r\n\r\nabcdef"));
  EXPECT_THAT(ask(*server, "GET /cut"), EndsWith("\r\n\r\nabc"));
  EXPECT_THAT(ask(*server, "HEAD /"), EndsWith("\r\n\r\n"));
}

TEST(HttpCalls, TooManyStreamsAreToldSo) {
  std::latch open(2);
  const auto server = serve([&](const HttpCall& call) {
    HttpReply reply;
    if (call.path == "/plain") return reply;
    reply.stream = [&](HttpStream& out) {
      out.write("open\n");
      open.count_down();
      while (out.pause(std::chrono::seconds(60))) continue;
    };
    return reply;
  });
  const Client first(*server);
  first.send("GET / HTTP/1.1\r\n\r\n");
  {
    const Client second(*server);
    second.send("GET / HTTP/1.1\r\n\r\n");
    open.wait();
    EXPECT_THAT(ask(*server, "GET /"), StartsWith("HTTP/1.1 503 "));
    EXPECT_THAT(ask(*server, "GET /plain"), StartsWith("HTTP/1.1 200 "));
  }
  // The one that has gone makes room, without a byte being written to it.
  std::string reply;
  while (reply.empty()) {
    const Client third(*server);
    third.send("GET / HTTP/1.1\r\n\r\n");
    const std::string head = third.read_until("\r\n");
    if (head.starts_with("HTTP/1.1 200 ")) reply = head;
  }
  server->stop();  // does not wait for the minute
}

// Asks over TLS; what comes until the end.
std::string ask_secretly(const HttpServer& server, const std::string& text) {
  const Client client(server);
  SSL_CTX* context = SSL_CTX_new(TLS_client_method());
  SSL* ssl = SSL_new(context);
  SSL_set_fd(ssl, client.socket());
  std::string reply;
  if (SSL_connect(ssl) == 1) {
    SSL_write(ssl, text.data(), static_cast<int>(text.size()));
    char part[4096];
    for (int count = 0; (count = SSL_read(ssl, part, sizeof part)) > 0;) reply.append(part, static_cast<size_t>(count));
    EXPECT_EQ(SSL_get_shutdown(ssl) & SSL_RECEIVED_SHUTDOWN, SSL_RECEIVED_SHUTDOWN);
  }
  SSL_free(ssl);
  SSL_CTX_free(context);
  return reply;
}

TEST(HttpCalls, TlsCarriesTheSame) {
  TestCa ca;
  const std::string big(3 << 20, 'x');
  const auto server = serve(
      [&](const HttpCall& call) {
        EXPECT_TRUE(call.secure);
        return HttpReply{.body = call.method == "POST" ? call.body : big};
      },
      ca.issue(""));
  const std::string reply = ask_secretly(*server, "GET / HTTP/1.1\r\n\r\n");
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 200 "));
  EXPECT_TRUE(reply.ends_with(big));
  EXPECT_THAT(ask_secretly(*server, "POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\nab"), EndsWith("\r\n\r\nab"));
  // Without TLS nothing is told, and the server lives.
  EXPECT_THAT(ask(*server, "GET /"), Not(HasSubstr("200")));
  EXPECT_THAT(ask_secretly(*server, "GET / HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 200 "));
}

TEST(HttpCalls, AMissingCertificateIsAnError) {
  HttpServerOptions options;
  options.address = "127.0.0.1:0";
  options.certificate_file = "/nowhere/node.pem";
  const auto server = HttpServer::start(options, [](const HttpCall&) { return HttpReply(); });
  ASSERT_FALSE(server);
  EXPECT_EQ(server.error().code, Code::kInvalid);
  EXPECT_THAT(server.error().message, HasSubstr("/nowhere/node.pem"));
}

TEST(HttpServer, AWrongAddressIsAnError) {
  const auto wrong = HttpServer::start("8080", {});
  EXPECT_EQ(wrong.error().code, Code::kInvalid);
}

}  // namespace
}  // namespace pscloud
