#include "net/certificate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>

namespace pscloud {
namespace {

using std::chrono::days;
using std::chrono::hours;
using testing::HasSubstr;

using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;

class CertificateTest : public testing::Test {
 protected:
  CertificateTest() {
    std::string pattern = testing::TempDir() + "certificate_XXXXXX";
    dir_ = ::mkdtemp(pattern.data());
  }
  ~CertificateTest() override { std::filesystem::remove_all(dir_); }

  std::string path(const std::string& name) const { return dir_ + "/" + name; }

  void make_cluster() {
    ASSERT_TRUE(make_ca(path("ca"), "blue", days(365)));
    ASSERT_TRUE(issue_certificate(path("ca"), path("node"), Role::kServer, "s0", days(30)));
  }

  static Certificate load(const std::string& path) {
    std::FILE* file = std::fopen(path.c_str(), "r");
    EXPECT_NE(file, nullptr) << path;
    Certificate certificate(PEM_read_X509(file, nullptr, nullptr, nullptr), X509_free);
    std::fclose(file);
    return certificate;
  }

  // What OpenSSL says of `leaf` when it trusts only `ca`, for both ends of a connection: X509_V_OK if it is good.
  static int verify(const std::string& ca, const std::string& leaf) {
    const Certificate root = load(ca);
    const Certificate certificate = load(leaf);
    for (const int purpose : {X509_PURPOSE_SSL_SERVER, X509_PURPOSE_SSL_CLIENT}) {
      const std::unique_ptr<X509_STORE, decltype(&X509_STORE_free)> store(X509_STORE_new(), X509_STORE_free);
      X509_STORE_add_cert(store.get(), root.get());
      const std::unique_ptr<X509_STORE_CTX, decltype(&X509_STORE_CTX_free)> context(X509_STORE_CTX_new(),
                                                                                    X509_STORE_CTX_free);
      X509_STORE_CTX_init(context.get(), store.get(), certificate.get(), nullptr);
      X509_STORE_CTX_set_purpose(context.get(), purpose);
      X509_STORE_CTX_set_flags(context.get(), X509_V_FLAG_X509_STRICT);
      X509_verify_cert(context.get());
      const int error = X509_STORE_CTX_get_error(context.get());
      if (error != X509_V_OK) return error;
    }
    return X509_V_OK;
  }

  static int mode(const std::string& path) {
    struct stat info {};
    EXPECT_EQ(::stat(path.c_str(), &info), 0) << path;
    return info.st_mode & 0777;
  }

  std::string dir_;
};

TEST_F(CertificateTest, AnIssuedCertificateVerifiesForBothEnds) {
  make_cluster();
  EXPECT_EQ(verify(path("node/ca.pem"), path("node/node.pem")), X509_V_OK);
}

TEST_F(CertificateTest, ItsKeyIsTheOneBesideIt) {
  make_cluster();
  std::FILE* file = std::fopen(path("node/node.key").c_str(), "r");
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(PEM_read_PrivateKey(file, nullptr, nullptr, nullptr),
                                                                EVP_PKEY_free);
  std::fclose(file);
  EXPECT_EQ(X509_check_private_key(load(path("node/node.pem")).get(), key.get()), 1);
}

TEST_F(CertificateTest, ACertificateOfAnotherCaOfTheSameNameFails) {
  make_cluster();
  ASSERT_TRUE(make_ca(path("other"), "blue", days(365)));
  EXPECT_NE(verify(path("other/ca.pem"), path("node/node.pem")), X509_V_OK);
}

TEST_F(CertificateTest, AnExpiredCertificateFails) {
  make_cluster();
  ASSERT_TRUE(issue_certificate(path("ca"), path("old"), Role::kWorker, "w0", hours(-1)));
  EXPECT_EQ(verify(path("ca/ca.pem"), path("old/node.pem")), X509_V_ERR_CERT_HAS_EXPIRED);
}

TEST_F(CertificateTest, ACertificateNeverOutlivesItsCa) {
  ASSERT_TRUE(make_ca(path("ca"), "blue", days(1)));
  ASSERT_TRUE(issue_certificate(path("ca"), path("node"), Role::kWorker, "w0", days(30)));
  EXPECT_EQ(read_certificate(path("node/node.pem"))->not_after, read_certificate(path("ca/ca.pem"))->not_after);
}

TEST_F(CertificateTest, ACaThatHasEndedIssuesNothing) {
  ASSERT_TRUE(make_ca(path("ca"), "blue", hours(-1)));
  const auto issued = issue_certificate(path("ca"), path("node"), Role::kWorker, "w0", days(1));
  EXPECT_EQ(issued.error().code, Code::kInvalid);
  EXPECT_FALSE(std::filesystem::exists(path("node")));
}

TEST_F(CertificateTest, ANodeCannotIssue) {
  make_cluster();
  EXPECT_EQ(X509_check_ca(load(path("node/node.pem")).get()), 0);
  std::filesystem::copy_file(path("node/node.pem"), path("node/ca.pem"),
                             std::filesystem::copy_options::overwrite_existing);
  std::filesystem::copy_file(path("node/node.key"), path("node/ca.key"));
  EXPECT_EQ(issue_certificate(path("node"), path("x"), Role::kWorker, "w0", days(1)).error().code, Code::kInvalid);
}

TEST_F(CertificateTest, OnlyTheOwnerReadsTheFiles) {
  make_cluster();
  EXPECT_EQ(mode(path("ca")), 0700);
  EXPECT_EQ(mode(path("node")), 0700);
  EXPECT_EQ(mode(path("ca/ca.key")), 0600);
  EXPECT_EQ(mode(path("node/node.key")), 0600);
}

TEST_F(CertificateTest, NothingButTheNamedFilesIsLeft) {
  make_cluster();
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(dir_)) {
    if (entry.is_regular_file()) names.insert(std::filesystem::relative(entry.path(), dir_).string());
  }
  EXPECT_THAT(names, testing::ElementsAre("ca/ca.key", "ca/ca.pem", "node/ca.pem", "node/node.key", "node/node.pem"));
}

TEST_F(CertificateTest, ReadingTellsClusterRoleNameAndTimes) {
  make_cluster();
  const auto info = read_certificate(path("node/node.pem"));
  ASSERT_TRUE(info) << info.error().message;
  EXPECT_EQ(info->subject, "O=blue, OU=server, CN=s0");
  EXPECT_EQ(info->cluster, "blue");
  EXPECT_EQ(info->role, "server");
  EXPECT_EQ(info->name, "s0");
  EXPECT_LT(info->not_before, ::time(nullptr) - 60);  // for peers whose clock is behind
  EXPECT_NEAR(static_cast<double>(info->not_after), static_cast<double>(::time(nullptr) + 30 * 86400), 60);
  EXPECT_EQ(info->fingerprint_sha256.size(), 32 * 3 - 1);

  const auto ca = read_certificate(path("ca/ca.pem"));
  ASSERT_TRUE(ca) << ca.error().message;
  EXPECT_EQ(ca->cluster, "blue");
  EXPECT_EQ(ca->role, "ca");
  EXPECT_EQ(ca->name, "");
}

TEST_F(CertificateTest, AnExistingCaIsNotOverwritten) {
  make_cluster();
  const auto before = read_certificate(path("ca/ca.pem"))->fingerprint_sha256;
  const auto again = make_ca(path("ca"), "blue", days(365));
  EXPECT_EQ(again.error().code, Code::kInvalid);
  EXPECT_THAT(again.error().message, HasSubstr("ca.key is there already"));
  EXPECT_EQ(read_certificate(path("ca/ca.pem"))->fingerprint_sha256, before);
}

TEST_F(CertificateTest, IssuingAgainReplaces) {
  make_cluster();
  const auto before = read_certificate(path("node/node.pem"))->fingerprint_sha256;
  ASSERT_TRUE(issue_certificate(path("ca"), path("node"), Role::kServer, "s0", days(30)));
  EXPECT_NE(read_certificate(path("node/node.pem"))->fingerprint_sha256, before);
  EXPECT_EQ(verify(path("node/ca.pem"), path("node/node.pem")), X509_V_OK);
}

TEST_F(CertificateTest, ANodeIsNotWrittenBesideTheKeyOfTheCa) {
  make_cluster();
  const auto issued = issue_certificate(path("ca"), path("ca"), Role::kServer, "s0", days(30));
  EXPECT_EQ(issued.error().code, Code::kInvalid);
  EXPECT_FALSE(std::filesystem::exists(path("ca/node.key")));
}

TEST_F(CertificateTest, NamesThatCouldMeanSomethingElseAreRefused) {
  make_cluster();
  const std::string too_long(65, 'a');
  for (const std::string& name :
       std::initializer_list<std::string>{"", "a b", "a/b", "w0,URI:x", "a\n", "ü", too_long}) {
    EXPECT_EQ(make_ca(path("x"), name, days(1)).error().code, Code::kInvalid) << name;
    EXPECT_EQ(issue_certificate(path("ca"), path("x"), Role::kWorker, name, days(1)).error().code, Code::kInvalid);
  }
  EXPECT_TRUE(issue_certificate(path("ca"), path("x"), Role::kWorker, std::string(64, 'a'), days(1)));
}

TEST_F(CertificateTest, ValidityThatNoDateCanHoldIsRefused) {
  EXPECT_EQ(make_ca(path("ca"), "blue", days(40000)).error().code, Code::kInvalid);
}

TEST_F(CertificateTest, TheNodesOfAJobTrustEachOtherByACaThatIsGone) {
  const std::vector<NodeName> nodes{{Role::kServer, "server"}, {Role::kWorker, "worker"}};
  const auto issued = issue_for_job("j7", nodes, days(30));
  ASSERT_TRUE(issued) << issued.error().message;
  ASSERT_EQ(issued->size(), 2u);
  const auto write = [&](const std::string& name, const std::string& text) { std::ofstream(path(name)) << text; };
  for (size_t i = 0; i < 2; ++i) {
    write("ca.pem", issued->at(1 - i).ca);  // as the other node has it
    write("node.pem", issued->at(i).certificate);
    EXPECT_EQ(verify(path("ca.pem"), path("node.pem")), X509_V_OK);
    const auto info = read_certificate(path("node.pem"));
    ASSERT_TRUE(info);
    EXPECT_EQ(info->cluster, "j7");
    EXPECT_EQ(info->role, role_name(nodes[i].role));
    EXPECT_THAT(issued->at(i).key, HasSubstr("PRIVATE KEY"));
  }
  EXPECT_NE(issued->at(0).key, issued->at(1).key);
  EXPECT_FALSE(issue_for_job("no/name", nodes, days(30)));
}

TEST_F(CertificateTest, WhatIsMissingOrBrokenIsNamed) {
  const auto no_ca = issue_certificate(path("none"), path("x"), Role::kWorker, "w0", days(1));
  EXPECT_EQ(no_ca.error().code, Code::kNotFound);
  EXPECT_THAT(no_ca.error().message, HasSubstr("pscloud ca init"));

  EXPECT_EQ(read_certificate(path("none.pem")).error().code, Code::kNotFound);
  std::ofstream(path("text.pem")) << "hello\n";
  const auto text = read_certificate(path("text.pem"));
  EXPECT_EQ(text.error().code, Code::kCorrupt);
  EXPECT_THAT(text.error().message, HasSubstr("text.pem"));

  make_cluster();
  ASSERT_TRUE(make_ca(path("other"), "blue", days(365)));
  std::filesystem::copy_file(path("other/ca.key"), path("ca/ca.key"),
                             std::filesystem::copy_options::overwrite_existing);
  const auto mixed = issue_certificate(path("ca"), path("x"), Role::kWorker, "w0", days(1));
  EXPECT_EQ(mixed.error().code, Code::kCorrupt);
}

TEST(NodeIdentity, AUriIsReadAsItWasWritten) {
  const NodeIdentity identity{"blue", Role::kScheduler, "h.0"};
  EXPECT_EQ(identity.uri(), "pscloud://blue/scheduler/h.0");
  const auto parsed = parse_identity(identity.uri());
  ASSERT_TRUE(parsed);
  EXPECT_EQ(*parsed, identity);
}

TEST(NodeIdentity, AnyOtherFormIsRefused) {
  for (const char* uri : {"", "pscloud://", "pscloud://blue", "pscloud://blue/server", "pscloud://blue/server/",
                          "pscloud:///server/s0", "pscloud://blue/boss/s0", "pscloud://blue/server/s0/x",
                          "pscloud://blue/server/s 0", "https://blue/server/s0", "pscloud://blue/Server/s0"}) {
    const auto parsed = parse_identity(uri);
    EXPECT_FALSE(parsed) << uri;
  }
}

TEST(Certificate, AServerOfHostsIsKnownByThem) {
  const std::vector<std::string> hosts{"10.1.2.3", "::1", "controller.example"};
  const auto pems = issue_for_hosts("controller", hosts, std::chrono::hours(1));
  ASSERT_TRUE(pems) << pems.error().message;
  BIO* text = BIO_new_mem_buf(pems->certificate.data(), static_cast<int>(pems->certificate.size()));
  X509* certificate = PEM_read_bio_X509(text, nullptr, nullptr, nullptr);
  ASSERT_NE(certificate, nullptr);
  EXPECT_EQ(X509_check_ip_asc(certificate, "10.1.2.3", 0), 1);
  EXPECT_EQ(X509_check_ip_asc(certificate, "::1", 0), 1);
  EXPECT_EQ(X509_check_host(certificate, "controller.example", 0, 0, nullptr), 1);
  EXPECT_EQ(X509_check_host(certificate, "other.example", 0, 0, nullptr), 0);
  EXPECT_FALSE(identity_of(certificate)) << "it is nobody in a job";
  X509_free(certificate);
  BIO_free(text);
  EXPECT_FALSE(issue_for_hosts("controller", std::vector<std::string>{"a,DNS:b"}, std::chrono::hours(1)));
}

}  // namespace
}  // namespace pscloud
