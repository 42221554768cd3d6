#include "io/instance_metadata.h"

#include <fmt/core.h>

#include <utility>

namespace pscloud {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// A metadata service answers in milliseconds; where there is none nothing answers at all.
constexpr milliseconds kMetadataTimeout{1000};
constexpr int kMetadataTries = 2;
constexpr uint64_t kMetadataBytesMax = 64 << 10;
constexpr std::chrono::seconds kTokenLife{300};
constexpr std::chrono::seconds kTokenMargin{60};

std::string metadata_service(const AwsVariables& environment) {
  std::string service = environment("AWS_EC2_METADATA_SERVICE_ENDPOINT");
  if (service.empty()) service = "http://169.254.169.254";
  while (service.ends_with('/')) service.pop_back();
  return service;
}

}  // namespace

InstanceMetadata::InstanceMetadata(const AwsVariables& environment, std::function<bool()> cancelled)
    : disabled_(environment("AWS_EC2_METADATA_DISABLED") == "true"),
      service_(metadata_service(environment)),
      http_({.tries = kMetadataTries,
             .connect_timeout = kMetadataTimeout,
             .total_timeout = kMetadataTimeout,
             .cancelled = std::move(cancelled),
             .proxy = false}) {}

bool InstanceMetadata::is_there() { return static_cast<bool>(renew_token()); }

Result<> InstanceMetadata::renew_token() {
  if (disabled_) return unavailable("AWS_EC2_METADATA_DISABLED is true");
  const auto now = steady_clock::now();
  if (!token_.empty() && now < token_until_) return {};
  const HttpResponse answer =
      TRY(http_.send({.method = "PUT",
                      .url = service_ + "/latest/api/token",
                      .headers = {{"x-aws-ec2-metadata-token-ttl-seconds", std::to_string(kTokenLife.count())}},
                      .response_bytes_max = kMetadataBytesMax}));
  if (answer.status != 200) return unavailable("{}: status {} for a token", host_of(service_), answer.status);
  token_ = answer.body;
  token_until_ = now + kTokenLife - kTokenMargin;
  return {};
}

Result<std::optional<std::string>> InstanceMetadata::get(const std::string& path) {
  for (bool again = false;; again = true) {
    TRY(renew_token());
    HttpResponse answer = TRY(http_.send({.url = fmt::format("{}/latest/meta-data/{}", service_, path),
                                          .headers = {{"x-aws-ec2-metadata-token", token_}},
                                          .response_bytes_max = kMetadataBytesMax}));
    if (answer.status == 200) return std::move(answer.body);
    if (answer.status == 404) return std::nullopt;
    // A machine that was asleep may find its token stale.
    token_.clear();
    if (answer.status != 401 || again) {
      return unavailable("{}: status {} for {}", host_of(service_), answer.status, path);
    }
  }
}

}  // namespace pscloud
