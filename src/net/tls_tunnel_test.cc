#include "net/tls_tunnel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "net/certificate.h"
#include "net/http_server.h"

namespace pscloud {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// A server over TLS that repeats what was posted, and the authority that proves it.
class TlsTunnelTest : public testing::Test {
 protected:
  TlsTunnelTest() {
    char path[] = "/tmp/pscloud-tunnel-test-XXXXXX";
    folder_ = ::mkdtemp(path);
  }
  ~TlsTunnelTest() override { std::filesystem::remove_all(folder_); }

  void serve(const std::string& host) {
    const std::vector<std::string> hosts{host};
    NodePems pems = issue_for_hosts("test", hosts, std::chrono::hours(1)).value();
    HttpServerOptions options;
    options.address = "127.0.0.1:0";
    options.body_bytes_max = 4 << 20;
    options.certificate_file = folder_ + "/cert.pem";
    options.key_file = folder_ + "/key.pem";
    std::ofstream(options.certificate_file) << pems.certificate;
    std::ofstream(options.key_file) << pems.key;
    ca_ = pems.ca;
    server_ = HttpServer::start(options, [](const HttpCall& call) { return HttpReply{.body = call.body}; }).value();
    address_ = parse_address(server_->address()).value();
  }

  // The other end of a connection that is carried.
  static Fd connect(TlsTunnel& tunnel) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    const timeval time{.tv_sec = 20, .tv_usec = 0};
    ::setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
    tunnel.carry(Fd(ends[1]));
    return Fd(ends[0]);
  }
  static std::string read_until_end(const Fd& connection, size_t bytes_max) {
    std::string text;
    char piece[4096];
    for (ssize_t got = 0; text.size() < bytes_max && (got = ::read(connection.get(), piece, sizeof piece)) > 0;) {
      text.append(piece, static_cast<size_t>(got));
    }
    return text;
  }

  std::string folder_;
  std::string ca_;
  std::unique_ptr<HttpServer> server_;
  Address address_;
};

TEST_F(TlsTunnelTest, WhatComesInTheClearIsAnsweredOverTls) {
  serve("127.0.0.1");
  const auto tunnel = TlsTunnel::open(address_, ca_);
  ASSERT_TRUE(tunnel) << tunnel.error().message;
  const std::string big(3 << 20, 'x');
  const std::string request =
      fmt::format("POST / HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{}", big.size(), big);
  for (int time = 0; time < 2; ++time) {
    const Fd connection = connect(**tunnel);
    for (size_t at = 0; at < request.size();) {
      const ssize_t sent = ::send(connection.get(), request.data() + at, request.size() - at, MSG_NOSIGNAL);
      ASSERT_GT(sent, 0);
      at += static_cast<size_t>(sent);
    }
    const std::string reply = read_until_end(connection, SIZE_MAX);
    EXPECT_THAT(reply.substr(0, 20), StartsWith("HTTP/1.1 200 "));
    EXPECT_TRUE(reply.ends_with("\r\n\r\n" + big));
  }
}

TEST_F(TlsTunnelTest, AServerThatProvesNothingIsRefused) {
  serve("127.0.0.1");
  const std::string first = ca_;
  serve("127.0.0.1");
  EXPECT_THAT(TlsTunnel::open(address_, first).error().message, HasSubstr("its certificate is refused"));
  EXPECT_EQ(TlsTunnel::open(address_, first).error().code, Code::kInvalid);
  EXPECT_EQ(TlsTunnel::open(address_, "nothing").error().code, Code::kInvalid);
  serve("other.example");
  EXPECT_EQ(TlsTunnel::open(address_, ca_).error().code, Code::kInvalid);
  server_->stop();
  EXPECT_EQ(TlsTunnel::open(address_, ca_).error().code, Code::kUnavailable);
}

TEST_F(TlsTunnelTest, ItsEndIsThatOfItsConnections) {
  serve("127.0.0.1");
  auto tunnel = TlsTunnel::open(address_, ca_).value();
  const Fd connection = connect(*tunnel);
  tunnel.reset();
  EXPECT_EQ(read_until_end(connection, 1), "");
}

}  // namespace
}  // namespace pscloud
