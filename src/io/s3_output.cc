#include "io/s3_output.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/random.h"
#include "io/s3_error.h"
#include "io/xml.h"

namespace pscloud {
namespace {

constexpr size_t kPartsMax = 10000;     // S3's limit
constexpr size_t kPartsOfASize = 2500;  // then they become twice as large, so that 300 GB fit
constexpr int kCompletionsMax = 3;
constexpr std::chrono::seconds kCompletionStall{300};  // S3 may think for minutes
constexpr const char* kMarkHeader = "x-amz-meta-pscloud-upload";

}  // namespace

S3Output::S3Output(S3Client& client, S3Name name) : client_(client), name_(std::move(name)) {}

S3Output::~S3Output() {
  stop_.request_stop();
  under_way_.clear();  // waits: a part that arrives after the abort would stay
  if (!upload_id_.empty()) abort();
}

size_t S3Output::part_bytes() const { return kPartBytes << (parts_ / kPartsOfASize); }

S3Call S3Output::object_call(std::string method) const {
  return {.method = std::move(method), .name = name_, .permission = "s3:PutObject"};
}

Result<> S3Output::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t size = part_bytes();
    if (buffer_.size() == size) {
      TRY(send_part());
      continue;
    }
    const size_t count = std::min(bytes.size(), size - buffer_.size());
    if (buffer_.capacity() < size && buffer_.size() + count > buffer_.capacity()) {
      buffer_.reserve(std::min(size, std::max(buffer_.size() + count, buffer_.capacity() * 2)));
    }
    buffer_ += bytes.substr(0, count);
    bytes.remove_prefix(count);
  }
  return {};
}

Result<> S3Output::begin_upload() {
  Random random = Random::from_system();
  mark_ = fmt::format("{:016x}{:016x}", random.next(), random.next());
  S3Call call = object_call("POST");
  call.query = {{"uploads", ""}};
  call.headers = {{kMarkHeader, mark_}};
  const HttpResponse response = TRY(client_.call(call));
  const XmlElement root = TRY(parse_xml(response.body).at(name_.uri()));
  upload_id_ = root.text_of("UploadId");
  if (upload_id_.empty()) return corrupt("{}: the answer to an upload's beginning has no UploadId", name_.uri());
  return {};
}

Result<> S3Output::send_part() {
  if (upload_id_.empty()) TRY(begin_upload());
  if (parts_ == kPartsMax) return invalid("{}: too long: S3 takes no more than {} parts", name_.uri(), kPartsMax);
  if (under_way_.size() == kPartsUnderWay) TRY(wait_for_oldest());
  S3Call call = object_call("PUT");
  call.query = {{"partNumber", std::to_string(++parts_)}, {"uploadId", upload_id_}};
  under_way_.push_back(
      std::async(std::launch::async,
                 [this, call = std::move(call), body = std::exchange(buffer_, {})]() mutable -> Result<std::string> {
                   call.body = body;
                   const HttpResponse response = TRY(client_.call(call, stop_.get_token()));
                   std::string etag = response.header("etag");
                   if (etag.empty()) return corrupt("{}: the answer to a part has no ETag", name_.uri());
                   return etag;
                 }));
  return {};
}

Result<> S3Output::wait_for_oldest() {
  auto oldest = std::move(under_way_.front());
  under_way_.pop_front();
  etags_.push_back(TRY(oldest.get()));
  return {};
}

Result<> S3Output::commit() {
  if (upload_id_.empty()) {
    S3Call call = object_call("PUT");
    call.body = buffer_;
    TRY(client_.call(call));
    return {};
  }
  if (!buffer_.empty()) TRY(send_part());
  while (!under_way_.empty()) TRY(wait_for_oldest());
  TRY(complete());
  upload_id_.clear();
  return {};
}

Result<> S3Output::complete() {
  std::string body = "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";
  for (size_t i = 0; i < etags_.size(); ++i) {
    body += fmt::format("<Part><PartNumber>{}</PartNumber><ETag>{}</ETag></Part>", i + 1, etags_[i]);
  }
  body += "</CompleteMultipartUpload>";
  S3Call call = object_call("POST");
  call.query = {{"uploadId", upload_id_}};
  call.headers = {{"content-type", "application/xml"}};
  call.body = body;
  call.stall = kCompletionStall;
  call.accepted_status = 404;
  for (int completions = 1;; ++completions) {
    const HttpResponse response = TRY(client_.call(call));
    const std::string code = s3_error_code(response);
    if (response.status != 404 && code.empty()) return {};
    // A try whose answer was lost may have done it; the next is told that there is no such upload. And not only we try
    // again: curl does, when a connection breaks that it had kept.
    if (code == "NoSuchUpload" && TRY(arrived_before())) return {};
    // S3 begins its answer before it knows how the work ends, so a success may turn out to be none.
    const bool again = code == "InternalError" || code == "SlowDown" || code == "ServiceUnavailable";
    if (!again || completions == kCompletionsMax) return client_.refusal(call, response);
  }
}

Result<bool> S3Output::arrived_before() {
  S3Call call{.method = "HEAD", .name = name_, .permission = "s3:GetObject"};
  return TRY(client_.call(call)).header(kMarkHeader) == mark_;
}

void S3Output::abort() {
  S3Call call{.method = "DELETE",
              .name = name_,
              .query = {{"uploadId", upload_id_}},
              .permission = "s3:AbortMultipartUpload",
              .must_end = true,
              .accepted_status = 404};  // a try whose answer was lost may have done it
  const auto response = client_.call(call);
  if (!response) log_warning("parts of an upload may be left: {}", response.error().message);
}

}  // namespace pscloud
