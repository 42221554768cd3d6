#include "net/tls_output.h"

#include <openssl/bio.h>
#include <sys/socket.h>

#include <cerrno>

#include "base/check.h"

namespace pscloud {
namespace {

int write_bio(BIO* bio, const char* bytes, size_t size, size_t* written) {
  static_cast<TlsOutput*>(BIO_get_data(bio))->append(bytes, size);
  *written = size;
  return 1;
}

// OpenSSL wants to know that a flush went well; it asks about other things too, of which there are none.
long control_bio(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

BIO_METHOD* make_method() {
  BIO_METHOD* const method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "gathered output");
  CHECK(method != nullptr && BIO_meth_set_write_ex(method, write_bio) == 1 &&
        BIO_meth_set_ctrl(method, control_bio) == 1);
  return method;
}

}  // namespace

BIO* TlsOutput::make_bio() {
  static const BIO_METHOD* const method = make_method();
  BIO* const bio = BIO_new(method);
  CHECK(bio != nullptr);
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  return bio;
}

Progress::Status TlsOutput::flush() {
  while (sent_ < bytes_.size()) {
    const ssize_t size = ::send(fd_, bytes_.data() + sent_, bytes_.size() - sent_, MSG_NOSIGNAL);
    if (size > 0) {
      sent_ += static_cast<size_t>(size);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return Progress::kWantWrite;
    } else if (errno != EINTR) {
      return Progress::kFailed;
    }
  }
  bytes_.clear();
  sent_ = 0;
  return Progress::kDone;
}

}  // namespace pscloud
