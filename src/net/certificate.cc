#include "net/certificate.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <optional>
#include <utility>

#include "base/check.h"
#include "net/openssl_reason.h"

namespace pscloud {
namespace {

template <auto kFree>
struct Free {
  template <class T>
  void operator()(T* object) const {
    kFree(object);
  }
};
using Bio = std::unique_ptr<BIO, Free<BIO_free_all>>;
using BigNumber = std::unique_ptr<BIGNUM, Free<BN_free>>;
using Certificate = std::unique_ptr<X509, Free<X509_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Free<X509_EXTENSION_free>>;
using PrivateKey = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;
using AltNames = std::unique_ptr<GENERAL_NAMES, Free<GENERAL_NAMES_free>>;

constexpr std::string_view kIdentityScheme = "pscloud://";
constexpr size_t kUriBytesMax = 400;  // no identity is as long
constexpr std::chrono::seconds kClockSkew = std::chrono::minutes(5);
constexpr std::chrono::seconds kValidityMax = std::chrono::days(36500);

Error system_error(std::string_view what, const std::string& path) {
  const int error = errno;
  std::string message = fmt::format("cannot {} {}: {}", what, path, std::strerror(error));
  if (error == ENOENT) return {Code::kNotFound, std::move(message)};
  if (error == EACCES || error == EPERM || error == ENOTDIR || error == EEXIST || error == EROFS) {
    return {Code::kInvalid, std::move(message)};
  }
  return {Code::kUnavailable, std::move(message)};
}

std::string join(const std::string& dir, const char* name) { return (std::filesystem::path(dir) / name).string(); }

bool exists(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0;
}

// Others must not list a directory that holds keys. One that is there keeps the mode its owner chose.
Result<> make_private_dir(const std::string& dir) {
  const std::filesystem::path parent = std::filesystem::path(dir).parent_path();
  std::error_code error;
  if (!parent.empty()) std::filesystem::create_directories(parent, error);
  if (error) return invalid("cannot make directory {}: {}", parent.string(), error.message());
  if (::mkdir(dir.c_str(), 0700) == 0) return {};
  if (errno == EEXIST && std::filesystem::is_directory(dir, error)) return {};
  return system_error("make directory", dir);
}

enum class Existing { kReplace, kKeep };

// Writes aside, then moves into place, so that nobody sees half a file. Mode 0600 from the first moment.
Result<> write_file(const std::string& path, BIO* content, Existing existing) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(content, &data);
  std::string aside = path + ".XXXXXX";
  const int file = ::mkostemp(aside.data(), O_CLOEXEC);
  if (file < 0) return system_error("write", path);
  bool written = true;
  for (long at = 0; written && at < size;) {
    const ssize_t count = ::write(file, data + at, static_cast<size_t>(size - at));
    if (count > 0) at += count;
    written = count > 0 || errno == EINTR;
  }
  written = written && ::fsync(file) == 0;
  std::optional<Error> error;
  if (!written) error = system_error("write", aside);
  ::close(file);
  if (!error && existing == Existing::kReplace && ::rename(aside.c_str(), path.c_str()) == 0) return {};
  // A link, unlike a rename, never takes the place of another file.
  if (!error && existing == Existing::kKeep && ::link(aside.c_str(), path.c_str()) == 0) {
    ::unlink(aside.c_str());
    return {};
  }
  if (!error) error = system_error("write", path);
  ::unlink(aside.c_str());
  return *std::move(error);
}

Bio pem_of(X509* certificate) {
  Bio content(BIO_new(BIO_s_mem()));
  CHECK(content && PEM_write_bio_X509(content.get(), certificate) == 1, "{}", openssl_reason());
  return content;
}

Bio pem_of(EVP_PKEY* key) {
  Bio content(BIO_new(BIO_s_secmem()));
  CHECK(content && PEM_write_bio_PrivateKey(content.get(), key, nullptr, nullptr, 0, nullptr, nullptr) == 1, "{}",
        openssl_reason());
  return content;
}

std::string text_of(const Bio& content) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(content.get(), &data);
  return {data, static_cast<size_t>(size)};
}

Result<Bio> open_file(const std::string& path) {
  Bio file(BIO_new_file(path.c_str(), "r"));
  if (file) return file;
  ERR_clear_error();
  return system_error("read", path);
}

Result<Certificate> load_certificate(const std::string& path) {
  const Bio file = TRY(open_file(path));
  Certificate certificate(PEM_read_bio_X509(file.get(), nullptr, nullptr, nullptr));
  if (!certificate) return corrupt("{} holds no certificate in PEM form: {}", path, openssl_reason());
  return certificate;
}

Result<PrivateKey> load_key(const std::string& path) {
  const Bio file = TRY(open_file(path));
  // Without this OpenSSL would ask for a pass phrase on the terminal.
  const auto no_pass_phrase = [](char*, int, int, void*) { return -1; };
  PrivateKey key(PEM_read_bio_PrivateKey(file.get(), nullptr, no_pass_phrase, nullptr));
  if (!key) return corrupt("{} holds no private key in plain PEM form: {}", path, openssl_reason());
  return key;
}

PrivateKey make_key() {
  PrivateKey key(EVP_EC_gen("P-256"));
  CHECK(key, "{}", openssl_reason());
  return key;
}

Result<> check_request(std::string_view what, const std::string& name, std::chrono::seconds validity) {
  if (!is_certificate_name(name)) {
    return invalid("\"{}\" cannot name a {}: use 1 to 64 of A-Z a-z 0-9 . _ -", name, what);
  }
  if (validity > kValidityMax || validity < -kValidityMax) {
    return invalid("a certificate cannot be valid for {} days: at most 36500",
                   std::chrono::duration_cast<std::chrono::days>(validity).count());
  }
  return {};
}

std::string name_part(const X509_NAME* name, int nid) {
  const int at = X509_NAME_get_index_by_NID(name, nid, -1);
  if (at < 0) return {};
  const ASN1_STRING* text = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at));
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)), static_cast<size_t>(ASN1_STRING_length(text))};
}

time_t to_time(const ASN1_TIME* time) {
  std::tm parts{};
  return ASN1_TIME_to_tm(time, &parts) == 1 ? ::timegm(&parts) : 0;
}

// The certificate but for its extensions and signature. `issuer` may be null: then it is its own.
Certificate make_certificate(EVP_PKEY* key, const X509* issuer, time_t not_after,
                             std::initializer_list<std::pair<int, std::string>> subject) {
  Certificate certificate(X509_new());
  CHECK(certificate, "{}", openssl_reason());
  bool ok = X509_set_version(certificate.get(), X509_VERSION_3) == 1;

  const BigNumber serial(BN_new());
  ok = ok && serial && BN_rand(serial.get(), 128, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) == 1 &&
       BN_to_ASN1_INTEGER(serial.get(), X509_get_serialNumber(certificate.get()));

  const time_t not_before = std::min(::time(nullptr), not_after) - kClockSkew.count();
  ok = ok && ASN1_TIME_set(X509_getm_notBefore(certificate.get()), not_before) &&
       ASN1_TIME_set(X509_getm_notAfter(certificate.get()), not_after);

  X509_NAME* name = X509_get_subject_name(certificate.get());
  for (const auto& [nid, text] : subject) {
    ok = ok && X509_NAME_add_entry_by_NID(name, nid, MBSTRING_UTF8, reinterpret_cast<const uint8_t*>(text.data()),
                                          static_cast<int>(text.size()), -1, 0) == 1;
  }
  ok = ok && X509_set_issuer_name(certificate.get(), issuer ? X509_get_subject_name(issuer) : name) == 1 &&
       X509_set_pubkey(certificate.get(), key) == 1;
  CHECK(ok, "{}", openssl_reason());
  return certificate;
}

void add_extensions(X509* certificate, X509* issuer, std::initializer_list<std::pair<int, std::string>> extensions) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  for (const auto& [nid, value] : extensions) {
    const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
    CHECK(extension && X509_add_ext(certificate, extension.get(), -1) == 1, "{}", openssl_reason());
  }
}

void sign(X509* certificate, EVP_PKEY* key) {
  CHECK(X509_sign(certificate, key, EVP_sha256()) > 0, "{}", openssl_reason());
}

std::string fingerprint(const X509* certificate) {
  uint8_t digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  CHECK(X509_digest(certificate, EVP_sha256(), digest, &size) == 1, "{}", openssl_reason());
  std::string text;
  for (unsigned i = 0; i < size; ++i) text += fmt::format("{}{:02X}", i == 0 ? "" : ":", digest[i]);
  return text;
}

struct Ca {
  Certificate certificate;
  PrivateKey key;
  std::string cluster;
};

Ca make_ca_of(const std::string& cluster, std::chrono::seconds validity) {
  Ca ca{{}, make_key(), cluster};
  ca.certificate = make_certificate(ca.key.get(), nullptr, ::time(nullptr) + validity.count(),
                                    {{NID_organizationName, cluster}, {NID_commonName, "pscloud CA"}});
  add_extensions(ca.certificate.get(), ca.certificate.get(),
                 {{NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
                  {NID_key_usage, "critical,keyCertSign,cRLSign"},
                  {NID_subject_key_identifier, "hash"}});
  sign(ca.certificate.get(), ca.key.get());
  return ca;
}

// `names` are its alternative names, as OpenSSL writes them: "URI:...".
Certificate issue(const Ca& ca, EVP_PKEY* key, const NodeName& node, const std::string& names,
                  std::chrono::seconds validity) {
  const time_t ca_end = to_time(X509_get0_notAfter(ca.certificate.get()));
  const NodeIdentity identity{ca.cluster, node.role, node.name};
  Certificate certificate = make_certificate(key, ca.certificate.get(),
                                             std::min(::time(nullptr) + static_cast<time_t>(validity.count()), ca_end),
                                             {{NID_organizationName, identity.cluster},
                                              {NID_organizationalUnitName, std::string(role_name(node.role))},
                                              {NID_commonName, node.name}});
  add_extensions(certificate.get(), ca.certificate.get(),
                 {{NID_basic_constraints, "critical,CA:FALSE"},
                  {NID_key_usage, "critical,digitalSignature"},
                  {NID_ext_key_usage, "serverAuth,clientAuth"},
                  {NID_subject_alt_name, names},
                  {NID_subject_key_identifier, "hash"},
                  {NID_authority_key_identifier, "keyid"}});
  sign(certificate.get(), ca.key.get());
  return certificate;
}

Certificate issue(const Ca& ca, EVP_PKEY* key, const NodeName& node, std::chrono::seconds validity) {
  return issue(ca, key, node, "URI:" + NodeIdentity{ca.cluster, node.role, node.name}.uri(), validity);
}

// An address of IPv4 or IPv6, or else a name; what is neither would be read as more than one.
Result<std::string> alt_name_of(const std::string& host) {
  uint8_t address[16];
  if (::inet_pton(AF_INET, host.c_str(), address) == 1 || ::inet_pton(AF_INET6, host.c_str(), address) == 1) {
    return "IP:" + host;
  }
  if (!is_certificate_name(host)) return invalid("\"{}\" is no name of a host for a certificate", host);
  return "DNS:" + host;
}

Result<Ca> load_ca(const std::string& dir) {
  const std::string path = join(dir, "ca.pem");
  if (!exists(path)) return not_found("{} does not exist: make a CA with `pscloud ca init`", path);
  Ca ca;
  ca.certificate = TRY(load_certificate(path));
  ca.key = TRY(load_key(join(dir, "ca.key")));
  if (X509_check_private_key(ca.certificate.get(), ca.key.get()) != 1) {
    ERR_clear_error();
    return corrupt("{} and ca.key beside it do not belong together", path);
  }
  ca.cluster = name_part(X509_get_subject_name(ca.certificate.get()), NID_organizationName);
  if (X509_check_ca(ca.certificate.get()) == 0 || !is_certificate_name(ca.cluster)) {
    return invalid("{} is not a CA that `pscloud ca init` made", path);
  }
  return ca;
}

}  // namespace

std::string NodeIdentity::uri() const {
  return fmt::format("{}{}/{}/{}", kIdentityScheme, cluster, role_name(role), name);
}

Result<NodeIdentity> parse_identity(std::string_view uri) {
  const auto wrong = [uri] {
    return invalid("\"{}\" is not of the form pscloud://<cluster>/<role>/<name>", uri.substr(0, 200));
  };
  if (!uri.starts_with(kIdentityScheme)) return wrong();
  const std::string_view path = uri.substr(kIdentityScheme.size());
  const size_t first = path.find('/');
  const size_t second = first == std::string_view::npos ? first : path.find('/', first + 1);
  if (second == std::string_view::npos) return wrong();
  NodeIdentity identity;
  identity.cluster = path.substr(0, first);
  identity.name = path.substr(second + 1);
  if (!is_certificate_name(identity.cluster) || !is_certificate_name(identity.name)) return wrong();
  for (const Role role : {Role::kScheduler, Role::kServer, Role::kWorker}) {
    identity.role = role;
    if (path.substr(first + 1, second - first - 1) == role_name(role)) return identity;
  }
  return wrong();
}

bool is_certificate_name(std::string_view text) {
  constexpr std::string_view kAllowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
  return !text.empty() && text.size() <= 64 && text.find_first_not_of(kAllowed) == std::string_view::npos;
}

Result<> make_ca(const std::string& dir, const std::string& cluster, std::chrono::seconds validity) {
  TRY(check_request("cluster", cluster, validity));
  for (const char* name : {"ca.key", "ca.pem"}) {
    if (exists(join(dir, name))) {
      return invalid(
          "{} is there already: a new CA would make every certificate of the old one worthless; "
          "choose another directory, or remove it first",
          join(dir, name));
    }
  }
  TRY(make_private_dir(dir));

  const Ca ca = make_ca_of(cluster, validity);
  TRY(write_file(join(dir, "ca.key"), pem_of(ca.key.get()).get(), Existing::kKeep));
  return write_file(join(dir, "ca.pem"), pem_of(ca.certificate.get()).get(), Existing::kKeep);
}

Result<> issue_certificate(const std::string& ca_dir, const std::string& out_dir, Role role, const std::string& name,
                           std::chrono::seconds validity) {
  TRY(check_request("node", name, validity));
  const Ca ca = TRY(load_ca(ca_dir));
  if (to_time(X509_get0_notAfter(ca.certificate.get())) <= ::time(nullptr)) {
    return invalid("the CA in {} has ended: make a new one with `pscloud ca init` in another directory", ca_dir);
  }
  if (exists(join(out_dir, "ca.key"))) {
    return invalid("{} holds the key of a CA, which a node must not have: choose another directory", out_dir);
  }
  TRY(make_private_dir(out_dir));

  const PrivateKey key = make_key();
  const Certificate certificate = issue(ca, key.get(), {role, name}, validity);
  TRY(write_file(join(out_dir, "ca.pem"), pem_of(ca.certificate.get()).get(), Existing::kReplace));
  TRY(write_file(join(out_dir, "node.key"), pem_of(key.get()).get(), Existing::kReplace));
  return write_file(join(out_dir, "node.pem"), pem_of(certificate.get()).get(), Existing::kReplace);
}

Result<std::vector<NodePems>> issue_for_job(const std::string& cluster, std::span<const NodeName> nodes,
                                            std::chrono::seconds validity) {
  TRY(check_request("cluster", cluster, validity));
  const Ca ca = make_ca_of(cluster, validity);
  std::vector<NodePems> issued;
  for (const NodeName& node : nodes) {
    TRY(check_request("node", node.name, validity));
    const PrivateKey key = make_key();
    const Certificate certificate = issue(ca, key.get(), node, validity);
    issued.push_back(
        {text_of(pem_of(ca.certificate.get())), text_of(pem_of(certificate.get())), text_of(pem_of(key.get()))});
  }
  return issued;
}

Result<NodePems> issue_for_hosts(const std::string& name, std::span<const std::string> hosts,
                                 std::chrono::seconds validity) {
  TRY(check_request("server", name, validity));
  std::string names;
  for (const std::string& host : hosts) names += (names.empty() ? "" : ",") + TRY(alt_name_of(host));
  const Ca ca = make_ca_of(name, validity);
  const PrivateKey key = make_key();
  const Certificate certificate = issue(ca, key.get(), {Role::kServer, name}, names, validity);
  return NodePems{text_of(pem_of(ca.certificate.get())), text_of(pem_of(certificate.get())),
                  text_of(pem_of(key.get()))};
}

std::vector<std::string> uris_of(const x509_st* certificate) {
  std::vector<std::string> uris;
  const AltNames names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    const ASN1_STRING* uri = name->d.uniformResourceIdentifier;
    const auto size = std::min(static_cast<size_t>(ASN1_STRING_length(uri)), kUriBytesMax);
    uris.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)), size);
  }
  return uris;
}

Result<NodeIdentity> identity_of(const x509_st* certificate) {
  const auto uris = uris_of(certificate);
  // Two would leave open which one counts.
  if (uris.size() != 1) {
    return invalid("its certificate has {} names of the form pscloud://cluster/role/name, not one", uris.size());
  }
  return parse_identity(uris.front());
}

Result<CertificateInfo> read_certificate(const std::string& pem_path) {
  const Certificate certificate = TRY(load_certificate(pem_path));
  const X509_NAME* subject = X509_get_subject_name(certificate.get());
  CertificateInfo info;
  info.not_before = to_time(X509_get0_notBefore(certificate.get()));
  info.not_after = to_time(X509_get0_notAfter(certificate.get()));
  info.fingerprint_sha256 = fingerprint(certificate.get());
  if (X509_check_ca(certificate.get()) != 0) {
    info.cluster = name_part(subject, NID_organizationName);
    info.role = "ca";
    if (!is_certificate_name(info.cluster)) return invalid("{} is not a CA that `pscloud ca init` made", pem_path);
    info.subject = fmt::format("O={}, CN={}", info.cluster, name_part(subject, NID_commonName));
    return info;
  }
  const std::vector<std::string> uris = uris_of(certificate.get());
  if (uris.empty()) return invalid("{} is not a certificate that `pscloud ca issue` made: it names no node", pem_path);
  NodeIdentity identity = TRY(identity_of(certificate.get()).at(pem_path));
  info.subject = fmt::format("O={}, OU={}, CN={}", name_part(subject, NID_organizationName),
                             name_part(subject, NID_organizationalUnitName), name_part(subject, NID_commonName));
  info.cluster = std::move(identity.cluster);
  info.role = role_name(identity.role);
  info.name = std::move(identity.name);
  return info;
}

std::string openssl_version() { return OpenSSL_version(OPENSSL_VERSION_STRING); }

}  // namespace pscloud
