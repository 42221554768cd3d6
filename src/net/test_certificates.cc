#include "net/test_certificates.h"

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <cstdlib>
#include <functional>

#include "base/check.h"

namespace pscloud {
namespace {

void add_extension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
  CHECK(extension != nullptr, "{}", value);
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

void write(const std::filesystem::path& path, const std::function<int(FILE*)>& put) {
  FILE* file = std::fopen(path.c_str(), "w");
  CHECK(file != nullptr && put(file) == 1, "{}", path.string());
  std::fclose(file);
}

}  // namespace

TestCa::TestCa() : key_(EVP_EC_gen("P-256")) {
  std::string pattern = std::filesystem::temp_directory_path() / "pscloud-test-ca-XXXXXX";
  CHECK(mkdtemp(pattern.data()) != nullptr, "{}", pattern);
  dir_ = pattern;
  certificate_ = make(dir_.filename(), key_, "", {-30, 30});
}

TestCa::~TestCa() {
  X509_free(certificate_);
  EVP_PKEY_free(key_);
  std::filesystem::remove_all(dir_);
}

X509* TestCa::make(const std::string& common_name, EVP_PKEY* key, const std::string& uri, Validity validity) {
  X509* certificate = X509_new();
  X509* issuer = certificate_ != nullptr ? certificate_ : certificate;
  X509_set_version(certificate, X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), ++issued_);
  X509_time_adj_ex(X509_getm_notBefore(certificate), validity.from_days, 0, nullptr);
  X509_time_adj_ex(X509_getm_notAfter(certificate), validity.to_days, 0, nullptr);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(common_name.c_str()), -1, -1, 0);
  X509_set_issuer_name(certificate, X509_get_subject_name(issuer));
  X509_set_pubkey(certificate, key);
  add_extension(certificate, issuer, NID_basic_constraints, issuer == certificate ? "critical,CA:TRUE" : "CA:FALSE");
  if (!uri.empty()) add_extension(certificate, issuer, NID_subject_alt_name, "URI:" + uri);
  CHECK(X509_sign(certificate, key_, EVP_sha256()) > 0);
  return certificate;
}

std::string TestCa::issue(const std::string& uri, Validity validity) {
  const std::filesystem::path dir = dir_ / std::to_string(issued_);
  std::filesystem::create_directory(dir);
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* certificate = make("test node", key, uri, validity);
  write(dir / "ca.pem", [&](FILE* file) { return PEM_write_X509(file, certificate_); });
  write(dir / "node.pem", [&](FILE* file) { return PEM_write_X509(file, certificate); });
  write(dir / "node.key",
        [&](FILE* file) { return PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr); });
  X509_free(certificate);
  EVP_PKEY_free(key);
  return dir;
}

}  // namespace pscloud
