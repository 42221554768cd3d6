#pragma once

#include <cstddef>
#include <vector>

#include "net/stream.h"

// OpenSSL's own name for it.
using BIO = struct bio_st;

namespace pscloud {

// What OpenSSL writes, gathered: by itself it makes a call to the system for each record of 16 KB. Takes whatever comes
// and sends it when told; who writes keeps it small by that.
class TlsOutput {
 public:
  // `fd` is a connected socket that does not block; it belongs to somebody else.
  explicit TlsOutput(int fd) : fd_(fd) {}
  TlsOutput(const TlsOutput&) = delete;
  TlsOutput& operator=(const TlsOutput&) = delete;

  // Where OpenSSL writes to; it takes this over, and this object must outlive it.
  BIO* make_bio();

  // kDone when all has been sent, kWantWrite, or kFailed with errno.
  Progress::Status flush();

  void append(const char* bytes, size_t size) { bytes_.insert(bytes_.end(), bytes, bytes + size); }

 private:
  const int fd_;
  std::vector<char> bytes_;
  size_t sent_ = 0;  // of them
};

}  // namespace pscloud
