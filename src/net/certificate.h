#pragma once

#include <chrono>
#include <ctime>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pscloud/error.h"
#include "pscloud/types.h"

struct x509_st;  // OpenSSL's X509

namespace pscloud {

// Each cluster has a small certificate authority of its own (ECDSA P-256): a directory with ca.pem and ca.key. It
// issues each node a directory with ca.pem, node.pem and node.key, which is what NodeOptions::tls_dir names. The CA's
// key is needed only to issue and never leaves its directory.

// What a node's certificate proves, in the only URI among its names: "pscloud://<cluster>/<role>/<name>".
struct NodeIdentity {
  std::string cluster;
  Role role = Role::kWorker;
  std::string name;

  std::string uri() const;
  bool operator==(const NodeIdentity&) const = default;
};

// kInvalid unless `uri` has exactly the form above.
Result<NodeIdentity> parse_identity(std::string_view uri);

// The URIs among a certificate's names. It may be forged: what is long is cut.
std::vector<std::string> uris_of(const x509_st* certificate);
// kInvalid unless it has exactly one, of the form above.
Result<NodeIdentity> identity_of(const x509_st* certificate);

// Clusters and nodes are named by 1 to 64 of [A-Za-z0-9._-], so that names are safe in URIs, paths and logs.
bool is_certificate_name(std::string_view text);

struct CertificateInfo {
  std::string subject;  // "O=cluster, OU=role, CN=name"
  std::string cluster;
  std::string role;  // "scheduler", "server", "worker", or "ca"
  std::string name;  // empty for a CA
  time_t not_before = 0;
  time_t not_after = 0;
  std::string fingerprint_sha256;  // as `openssl x509 -fingerprint -sha256` prints it
};

// Makes a CA in `dir`, which is made with mode 0700 if need be. kInvalid if a CA is there already.
Result<> make_ca(const std::string& dir, const std::string& cluster, std::chrono::seconds validity);

// Issues a certificate of the CA in `ca_dir` and writes what the node needs to `out_dir`, in place of what was there.
// It ends after `validity`, but not after its CA; a negative one makes a certificate that has ended, for tests.
// kNotFound if there is no CA; kInvalid if `out_dir` holds a CA's key, which a node must never have.
Result<> issue_certificate(const std::string& ca_dir, const std::string& out_dir, Role role, const std::string& name,
                           std::chrono::seconds validity);

// What a node's directory holds, as text.
struct NodePems {
  std::string ca;           // ca.pem
  std::string certificate;  // node.pem
  std::string key;          // node.key
};
struct NodeName {
  Role role = Role::kWorker;
  std::string name;
};

// Certificates for the nodes of one job, in their order, by a CA that nobody can ask again: its key is never on disk,
// and gone when this returns.
Result<std::vector<NodePems>> issue_for_job(const std::string& cluster, std::span<const NodeName> nodes,
                                            std::chrono::seconds validity);

// The same for one server that browsers and other clients know by host: a certificate for these names and addresses.
Result<NodePems> issue_for_hosts(const std::string& name, std::span<const std::string> hosts,
                                 std::chrono::seconds validity);

// Reads the first certificate of a PEM file. It is not verified. kInvalid if it is not one of ours.
Result<CertificateInfo> read_certificate(const std::string& pem_path);

// Of the OpenSSL that this process runs with: "3.0.22".
std::string openssl_version();

}  // namespace pscloud
