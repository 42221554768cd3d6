#pragma once

#include <deque>
#include <future>
#include <stop_token>
#include <string>
#include <vector>

#include "io/file_store.h"
#include "io/s3_client.h"

namespace pscloud {

// A file on its way to S3: in one request if it is small, else in parts, of which several are sent at the same time.
// S3 shows nothing of it before commit(); without that the parts are thrown away.
class S3Output final : public Output {
 public:
  static constexpr size_t kPartBytes = 8 << 20;
  static constexpr size_t kPartsUnderWay = 4;

  // `client` is borrowed.
  S3Output(S3Client& client, S3Name name);
  ~S3Output() override;

  // Begins an upload, which the destructor ends: whether it would be allowed.
  Result<> begin_upload();

  Result<> write(std::string_view bytes) override;
  Result<> commit() override;

 private:
  size_t part_bytes() const;
  S3Call object_call(std::string method) const;
  Result<> send_part();
  Result<> wait_for_oldest();
  Result<> complete();
  Result<bool> arrived_before();
  void abort();

  S3Client& client_;
  const S3Name name_;
  std::string buffer_;
  std::string upload_id_;           // of the upload in parts, once there is one
  std::string mark_;                // which this upload, and no other, leaves on the file
  std::vector<std::string> etags_;  // of the parts that have arrived
  size_t parts_ = 0;                // sent
  std::stop_source stop_;
  std::deque<std::future<Result<std::string>>> under_way_;
};

}  // namespace pscloud
