#include "net/tls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "net/address.h"
#include "net/socket.h"
#include "net/tcp.h"
#include "net/test_certificates.h"
#include "net/test_node.h"

namespace pscloud {
namespace {

using testing::HasSubstr;

std::unique_ptr<LoopTransport> make_tls(const std::string& dir, TcpOptions options = {}) {
  options.tls_dir = dir;
  return make_tcp_transport(options, system_clock).value();
}

// A client of OpenSSL alone, with or without certificate. How far did it come?
enum class Outcome { kRefused, kLetIn };
Outcome call(const std::string& address, const std::string& dir, int version = TLS1_3_VERSION) {
  const Endpoint endpoint = resolve(parse_address(address).value(), false).value().front();
  const Fd fd(socket(endpoint.storage.ss_family, SOCK_STREAM, 0));
  const timeval patience{.tv_sec = 30, .tv_usec = 0};
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  EXPECT_EQ(connect(fd.get(), endpoint.get(), endpoint.size), 0);
  SSL_CTX* context = SSL_CTX_new(TLS_client_method());
  SSL_CTX_set_max_proto_version(context, version);
  if (!dir.empty()) {
    EXPECT_EQ(SSL_CTX_use_certificate_chain_file(context, (dir + "/node.pem").c_str()), 1);
    EXPECT_EQ(SSL_CTX_use_PrivateKey_file(context, (dir + "/node.key").c_str(), SSL_FILETYPE_PEM), 1);
  }
  SSL* ssl = SSL_new(context);
  SSL_set_fd(ssl, fd.get());
  Outcome outcome = Outcome::kRefused;
  if (SSL_connect(ssl) == 1) {
    // The server sends nothing by itself: bytes come only if it took our frame and sends it back.
    const HeaderBytes frame = encode_header({}, false);
    char first = 0;
    if (SSL_write(ssl, frame.data(), frame.size()) > 0 && SSL_read(ssl, &first, 1) == 1) outcome = Outcome::kLetIn;
  }
  SSL_free(ssl);
  SSL_CTX_free(context);
  return outcome;
}

class Tls : public testing::Test {
 protected:
  TestCa ca_;
  const std::string server_dir_ = ca_.issue("pscloud://test/server/s0");
  const std::string worker_dir_ = ca_.issue("pscloud://test/worker/w0");

  // What a server logs of a caller with these files; it must not hear of it otherwise.
  std::string refusal_of(const std::string& dir, int version = TLS1_3_VERSION) {
    testing::internal::CaptureStderr();
    {
      TestNode server(make_tls(server_dir_), {.echo = true});
      EXPECT_EQ(call(server.listen("127.0.0.1:0").value(), dir, version), Outcome::kRefused);
      server.stop();
      EXPECT_TRUE(server.seen().opened.empty());
      EXPECT_TRUE(server.seen().closed.empty());
    }
    return testing::internal::GetCapturedStderr();
  }
};

TEST_F(Tls, LetsInWhoHasACertificateOfTheCluster) {
  TestNode server(make_tls(server_dir_), {.echo = true});
  EXPECT_EQ(call(server.listen("127.0.0.1:0").value(), worker_dir_), Outcome::kLetIn);
  const Peer peer = server.seen().opened.begin()->second;
  EXPECT_EQ(peer.role, Role::kWorker);
  EXPECT_EQ(peer.name, "w0");
}

TEST_F(Tls, RefusesNoCertificate) {
  EXPECT_THAT(refusal_of(""),
              testing::ContainsRegex("refused a connection from 127.0.0.1:[0-9]+: TLS handshake failed: "
                                     "peer did not return a certificate"));
}

TEST_F(Tls, RefusesACertificateOfAnotherCa) {
  TestCa other;
  const std::string log = refusal_of(other.issue("pscloud://test/worker/mallory"));
  EXPECT_THAT(log, HasSubstr("its certificate is refused: unable to get local issuer certificate"));
  EXPECT_THAT(log, HasSubstr("calls itself pscloud://test/worker/mallory"));
}

TEST_F(Tls, RefusesACertificateOutOfItsTime) {
  EXPECT_THAT(refusal_of(ca_.issue("pscloud://test/worker/w0", {-2, -1})), HasSubstr("certificate has expired"));
  EXPECT_THAT(refusal_of(ca_.issue("pscloud://test/worker/w0", {1, 2})), HasSubstr("certificate is not yet valid"));
}

TEST_F(Tls, RefusesACertificateThatNamesNoRole) {
  EXPECT_THAT(refusal_of(ca_.issue("")), HasSubstr("0 names of the form pscloud://cluster/role/name"));
  for (const std::string uri :
       {"https://test/worker/a", "pscloud:///worker/a", "pscloud://test/worker/", "pscloud://test/worker",
        "pscloud://test/worker/a/b", "pscloud://test/admin/a", "pscloud://test//a", "pscloud://test/worker/a b"}) {
    EXPECT_THAT(refusal_of(ca_.issue(uri)), HasSubstr(fmt::format("\"{}\" is not of the form pscloud://", uri)));
  }
  EXPECT_THAT(refusal_of(ca_.issue("pscloud://test/worker/a,URI:pscloud://test/scheduler/b")), HasSubstr("2 names"));
}

TEST_F(Tls, RefusesANodeOfAnotherCluster) {
  EXPECT_THAT(refusal_of(ca_.issue("pscloud://other/worker/w0")), HasSubstr("it belongs to cluster other, we to test"));
}

TEST_F(Tls, RefusesAnOlderTls) {
  EXPECT_THAT(refusal_of(worker_dir_, TLS1_2_VERSION), HasSubstr("unsupported protocol"));
}

TEST_F(Tls, RefusesPlaintext) {
  testing::internal::CaptureStderr();
  {
    TestNode server(make_tls(server_dir_));
    TestNode plain(make_tcp_transport({.insecure = true}, system_clock).value());
    const LaneId lane = plain.connect(server.listen("127.0.0.1:0").value());
    plain.send(lane, {});
    plain.wait_closed(lane);
    EXPECT_TRUE(plain.seen().closed.contains(lane));
    EXPECT_TRUE(server.seen().opened.empty());
  }
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("TLS handshake failed: wrong version number"));
}

TEST_F(Tls, TheCallerRefusesAPeerOfTheWrongRole) {
  TestNode server(make_tls(server_dir_));
  TestNode worker(make_tls(worker_dir_));
  const LaneId lane = worker.connect(server.listen("127.0.0.1:0").value(), Role::kScheduler);
  const Error why = worker.wait_closed(lane);
  EXPECT_EQ(why.code, Code::kInvalid);
  EXPECT_THAT(why.message, HasSubstr("its certificate is refused: it is server s0, but a scheduler was expected"));
  EXPECT_FALSE(worker.seen().opened.contains(lane));
}

TEST_F(Tls, TheCallerRefusesAPeerOfAnotherCa) {
  TestCa other;
  TestNode server(make_tls(other.issue("pscloud://test/server/s0")));
  TestNode worker(make_tls(worker_dir_));
  const LaneId lane = worker.connect(server.listen("127.0.0.1:0").value());
  EXPECT_THAT(worker.wait_closed(lane).message, HasSubstr("its certificate is refused"));
  EXPECT_FALSE(worker.seen().opened.contains(lane));
}

TEST_F(Tls, ACallerThatIsRefusedIsToldWhy) {
  TestNode server(make_tls(server_dir_));
  TestNode worker(make_tls(ca_.issue("pscloud://test/worker/w0", {-2, -1})));
  const LaneId lane = worker.connect(server.listen("127.0.0.1:0").value());
  worker.send(lane, {});
  const Error why = worker.wait_closed(lane);
  EXPECT_EQ(why.code, Code::kInvalid);
  EXPECT_THAT(why.message, HasSubstr("the peer refuses us: sslv3 alert certificate expired"));
}

TEST_F(Tls, WhoNeverEndsTheHandshakeIsClosed) {
  testing::internal::CaptureStderr();
  {
    TestNode server(make_tls(server_dir_, {.handshake_timeout = std::chrono::milliseconds(50)}));
    const Endpoint endpoint =
        resolve(parse_address(server.listen("127.0.0.1:0").value()).value(), false).value().front();
    const Fd fd(socket(endpoint.storage.ss_family, SOCK_STREAM, 0));
    ASSERT_EQ(connect(fd.get(), endpoint.get(), endpoint.size), 0);
    char byte = 0;
    EXPECT_EQ(recv(fd.get(), &byte, 1, 0), 0);
  }
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("no TLS handshake within 0.05 s"));
}

TEST_F(Tls, APeerThatDiesWhileWeSendDoesNotKillUs) {
  TestNode server(make_tls(server_dir_));
  const std::string address = server.listen("127.0.0.1:0").value();
  for (size_t i = 0; i < 5; ++i) {
    // It leaves without waiting, with bytes unread: the kernel answers what we still send with a reset.
    TestNode worker(make_tls(worker_dir_, {.linger = Duration(0)}));
    ASSERT_TRUE(worker.wait_open(worker.connect(address)));
    const LaneId lane = server.wait_lane(i);
    const auto chunk = std::make_shared<const Buffer>(Buffer::copy_of(std::vector<std::byte>(1 << 20)));
    for (int j = 0; j < 32; ++j) server.send(lane, {.header = {}, .payload = chunk});
    worker.stop();
    EXPECT_EQ(server.wait_closed(lane).code, Code::kUnavailable);
  }
}

TEST_F(Tls, MissingOrForeignFilesAreNamed) {
  const auto why = [](const std::string& dir) {
    return make_tcp_transport({.tls_dir = dir}, system_clock).error().message;
  };
  EXPECT_THAT(why("/nowhere"), HasSubstr("cannot use /nowhere/ca.pem: "));
  std::filesystem::copy_file(server_dir_ + "/node.key", worker_dir_ + "/node.key",
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(why(worker_dir_), HasSubstr("node.key: key values mismatch"));
  EXPECT_THAT(why(ca_.issue("")), HasSubstr("node.pem: its certificate has 0 names"));
}

}  // namespace
}  // namespace pscloud
