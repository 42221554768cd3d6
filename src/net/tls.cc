#include "net/tls.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "net/certificate.h"
#include "net/sigpipe.h"
#include "net/socket.h"
#include "net/tls_output.h"

namespace pscloud {
namespace {

constexpr size_t kRecordBytes = 16384;        // the largest TLS record
constexpr size_t kReadAheadBytes = 64 << 10;  // of records taken from the socket at once
constexpr size_t kGatherBytes = 256 << 10;    // of plain text whose records go to the socket at once
constexpr size_t kNameBytesMax = 200;

// The oldest error of OpenSSL's queue: what went wrong first.
std::string openssl_text() {
  const unsigned long code = ERR_peek_error();
  const char* reason = ERR_reason_error_string(code);
  return reason != nullptr ? reason : fmt::format("OpenSSL error {:x}", code);
}

// Before each operation of OpenSSL: what is left of an earlier one would be taken for this one's error.
void forget_errors() {
  ERR_clear_error();
  errno = 0;
}

// What a certificate that may be forged calls itself, for messages.
std::string claimed_name(X509* certificate) {
  const auto uris = uris_of(certificate);
  if (!uris.empty()) return uris.front();
  std::array<char, kNameBytesMax> subject{};
  X509_NAME_oneline(X509_get_subject_name(certificate), subject.data(), subject.size());
  return subject.data();
}

class TlsStream final : public Stream {
 public:
  TlsStream(SSL* ssl, const std::string& cluster, std::optional<Role> expected, uint64_t rekey_bytes)
      : ssl_(ssl), cluster_(cluster), expected_(expected), rekey_bytes_(rekey_bytes) {
    SSL_set_app_data(ssl_, this);
    expected ? SSL_set_connect_state(ssl_) : SSL_set_accept_state(ssl_);
  }
  ~TlsStream() override { SSL_free(ssl_); }

  Progress handshake() override {
    forget_errors();
    const SigpipeBlock block;
    const int result = SSL_do_handshake(ssl_);
    if (result != 1) return stuck(result);
    if (!peer_) {  // cannot be, but what it would let in is too much to rely on it
      error_ = invalid("it has shown no certificate");
      return {Progress::kFailed};
    }
    handshake_done_ = true;
    // The kernel's TLS needs the socket itself.
    if (!BIO_get_ktls_send(SSL_get_wbio(ssl_))) {
      output_ = std::make_unique<TlsOutput>(SSL_get_fd(ssl_));
      SSL_set0_wbio(ssl_, output_->make_bio());
    }
    return {Progress::kDone};
  }

  // One record at most comes of each call, so the second part of `room` is left alone.
  Progress read(std::span<const iovec> room) override {
    forget_errors();
    std::optional<SigpipeBlock> block;
    if (!output_) block.emplace();  // it may answer
    size_t bytes = 0;
    const int result = SSL_read_ex(ssl_, room.front().iov_base, room.front().iov_len, &bytes);
    if (result != 1) return stuck(result);
    has_read_ = true;
    return {Progress::kDone, bytes};
  }

  Progress write(std::span<const iovec> data) override {
    return output_ ? write_gathered(data) : write_by_kernel(data);
  }

  void end_writing() override {
    forget_errors();
    const SigpipeBlock block;
    SSL_shutdown(ssl_);  // a goodbye that does not fit is not needed: the end of the socket says the same
    if (output_) (void)output_->flush();
    shutdown(SSL_get_fd(ssl_), SHUT_WR);
  }

  const Error& error() const override { return error_; }

  void identify(Peer& peer) const override {
    peer.role = peer_->role;
    peer.name = peer_->name;
  }

  // OpenSSL asks for each certificate of the chain, the peer's own last. False refuses it.
  bool judge(bool chain_ok, X509_STORE_CTX* store) {
    X509* certificate = X509_STORE_CTX_get0_cert(store);
    if (!chain_ok) {
      refusal_ = fmt::format("{} (it calls itself {})", X509_verify_cert_error_string(X509_STORE_CTX_get_error(store)),
                             claimed_name(certificate));
      return false;
    }
    if (X509_STORE_CTX_get_error_depth(store) > 0) return true;
    auto identity = identity_of(certificate);
    if (!identity) {
      refusal_ = identity.error().message;
    } else if (identity->cluster != cluster_) {
      refusal_ = fmt::format("it belongs to cluster {}, we to {}", identity->cluster, cluster_);
    } else if (expected_ && identity->role != *expected_) {
      refusal_ = fmt::format("it is {} {}, but a {} was expected", role_name(identity->role), identity->name,
                             role_name(*expected_));
    } else {
      peer_ = *std::move(identity);
      return true;
    }
    X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION);
    return false;
  }

 private:
  // Records under one key of AES-GCM are limited; OpenSSL does not count them. True: it is time for another key.
  bool count_under_key(size_t bytes) {
    under_key_bytes_ += bytes;
    if (under_key_bytes_ < rekey_bytes_) return false;
    under_key_bytes_ = 0;
    return true;
  }

  // Headers and small payloads are put together to fill a record. Large payloads are taken from where they are.
  Progress write_gathered(std::span<const iovec> data) {
    if (accepted_ == 0) {
      const char* from = static_cast<const char*>(data.front().iov_base);
      size_t size = std::min(data.front().iov_len, kGatherBytes);
      if (size < kRecordBytes) {
        size = fill_record(data);
        from = reinterpret_cast<const char*>(record_.data());
      }
      forget_errors();
      while (accepted_ < size) {
        size_t bytes = 0;  // of one record
        const int result = SSL_write_ex(ssl_, from + accepted_, size - accepted_, &bytes);
        if (result != 1) return stuck(result);
        accepted_ += bytes;
      }
      if (count_under_key(accepted_)) SSL_key_update(ssl_, SSL_KEY_UPDATE_NOT_REQUESTED);
    }
    const Progress::Status status = output_->flush();
    if (status == Progress::kDone) return {status, std::exchange(accepted_, 0)};
    if (status == Progress::kFailed) error_ = unavailable("{}", errno_text(errno));
    return {status};
  }

  // Each call makes one record. After the socket was full, OpenSSL goes on from the address it was given first
  // (openssl/openssl#21202), which must be one that stays: everything is copied.
  Progress write_by_kernel(std::span<const iovec> data) {
    if (pending_ == 0) pending_ = fill_record(data);
    forget_errors();
    const SigpipeBlock block;
    size_t bytes = 0;
    const int result = SSL_write_ex(ssl_, record_.data(), pending_, &bytes);
    if (result != 1) return stuck(result);
    pending_ = 0;
    if (!count_under_key(bytes)) return {Progress::kDone, bytes};
    // The kernel's TLS cannot change its key. A new connection has another; its session goes on where this one was.
    error_ = unavailable("as much as is safe has been sent under one key");
    return {Progress::kFailed};
  }

  size_t fill_record(std::span<const iovec> data) {
    record_.resize(kRecordBytes);
    size_t size = 0;
    for (const iovec& part : data) {
      const size_t taken = std::min(part.iov_len, record_.size() - size);
      std::memcpy(record_.data() + size, part.iov_base, taken);
      size += taken;
    }
    return size;
  }

  Progress stuck(int result) {
    const int saved_errno = errno;
    switch (SSL_get_error(ssl_, result)) {
      case SSL_ERROR_WANT_READ: return {Progress::kWantRead};
      case SSL_ERROR_WANT_WRITE: return {Progress::kWantWrite};
      case SSL_ERROR_ZERO_RETURN: return {Progress::kEnd};
      case SSL_ERROR_SYSCALL:
        if (saved_errno == 0) return {Progress::kEnd};
        error_ = unavailable("{}", errno_text(saved_errno));
        return {Progress::kFailed};
      default: break;
    }
    if (output_) (void)output_->flush();  // what we complain of
    // Alerts, what the peer complains of, have numbers of their own.
    const bool by_peer = ERR_GET_REASON(ERR_peek_error()) >= SSL_AD_REASON_OFFSET;
    if (!refusal_.empty()) {
      error_ = invalid("its certificate is refused: {}", refusal_);
    } else if (by_peer && !has_read_) {
      error_ = invalid("the peer refuses us: {}", openssl_text());
    } else if (by_peer) {
      error_ = unavailable("the peer ended TLS: {}", openssl_text());
    } else if (!handshake_done_) {
      error_ = invalid("TLS handshake failed: {}", openssl_text());
    } else {
      error_ = corrupt("TLS failed: {}", openssl_text());
    }
    return {Progress::kFailed};
  }

  SSL* const ssl_;
  const std::string& cluster_;  // of the context
  const std::optional<Role> expected_;
  const uint64_t rekey_bytes_;
  std::unique_ptr<TlsOutput> output_;  // once the handshake is done; null: the kernel encrypts
  size_t accepted_ = 0;                // bytes that OpenSSL has, and the socket not all of them
  uint64_t under_key_bytes_ = 0;
  std::vector<std::byte> record_;  // none before the first use: strangers are many
  size_t pending_ = 0;             // bytes of record_ that the kernel could not take
  bool handshake_done_ = false;
  bool has_read_ = false;
  std::optional<NodeIdentity> peer_;
  std::string refusal_;
  Error error_{};
};

int judge(int chain_ok, X509_STORE_CTX* store) {
  auto* ssl = static_cast<SSL*>(X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
  return static_cast<TlsStream*>(SSL_get_app_data(ssl))->judge(chain_ok == 1, store) ? 1 : 0;
}

SSL* make_ssl(SSL_CTX* context, int fd) {
  SSL* ssl = SSL_new(context);
  CHECK(ssl != nullptr && SSL_set_fd(ssl, fd) == 1, "{}", openssl_text());
  return ssl;
}

}  // namespace

Result<std::unique_ptr<TlsContext>> TlsContext::load(const std::string& dir, uint64_t rekey_bytes) {
  ERR_clear_error();
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_method()), SSL_CTX_free);
  CHECK(context != nullptr, "{}", openssl_text());
  SSL_CTX* const c = context.get();

  CHECK(SSL_CTX_set_min_proto_version(c, TLS1_3_VERSION) == 1);
  CHECK(SSL_CTX_set_ciphersuites(c, "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256") == 1);
  // The end of a lane without TLS's goodbye is no secret: frames have lengths, and the session layer sends again.
  SSL_CTX_set_options(c, SSL_OP_ENABLE_KTLS | SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_mode(c, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_read_ahead(c, 1);
  SSL_CTX_set_default_read_buffer_len(c, kReadAheadBytes);
  // Every lane shows its certificate: none is let in for having been here before.
  SSL_CTX_set_num_tickets(c, 0);
  SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_verify(c, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, judge);
  // A key with a password would make OpenSSL ask on the terminal.
  SSL_CTX_set_default_passwd_cb(c, [](char*, int, int, void*) { return -1; });

  const auto cannot = [](const std::string& path) {
    return invalid("cannot use {}: {}; `pscloud ca` makes the files of a node", path, openssl_text());
  };
  const std::string ca = dir + "/ca.pem";
  const std::string certificate = dir + "/node.pem";
  const std::string key = dir + "/node.key";
  if (SSL_CTX_load_verify_file(c, ca.c_str()) != 1) return cannot(ca);
  if (SSL_CTX_use_certificate_chain_file(c, certificate.c_str()) != 1) return cannot(certificate);
  if (SSL_CTX_use_PrivateKey_file(c, key.c_str(), SSL_FILETYPE_PEM) != 1) return cannot(key);
  if (SSL_CTX_check_private_key(c) != 1) return cannot(key);
  auto identity = TRY(identity_of(SSL_CTX_get0_certificate(c)).at(certificate));
  return std::unique_ptr<TlsContext>(new TlsContext(context.release(), std::move(identity.cluster), rekey_bytes));
}

TlsContext::TlsContext(SSL_CTX* context, std::string cluster, uint64_t rekey_bytes)
    : context_(context), cluster_(std::move(cluster)), rekey_bytes_(rekey_bytes) {}

TlsContext::~TlsContext() { SSL_CTX_free(context_); }

std::unique_ptr<Stream> TlsContext::accept(int fd) const {
  return std::make_unique<TlsStream>(make_ssl(context_, fd), cluster_, std::nullopt, rekey_bytes_);
}

std::unique_ptr<Stream> TlsContext::connect(int fd, Role expected) const {
  return std::make_unique<TlsStream>(make_ssl(context_, fd), cluster_, expected, rekey_bytes_);
}

}  // namespace pscloud
