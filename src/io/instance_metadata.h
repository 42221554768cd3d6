#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "io/aws_credentials.h"
#include "io/http_client.h"

namespace pscloud {

// What an EC2 instance can ask about itself: its metadata service, version 2, which wants a token first. It is at
// 169.254.169.254, or where AWS_EC2_METADATA_SERVICE_ENDPOINT says. One thread.
class InstanceMetadata {
 public:
  explicit InstanceMetadata(const AwsVariables& environment, std::function<bool()> cancelled = {});

  // Somebody answers: this is an instance. Nobody is asked if AWS_EC2_METADATA_DISABLED is "true".
  bool is_there();

  // The text at a path below /latest/meta-data/; nothing where there is none. kUnavailable or kTimeout if there is no
  // service, or it fails.
  Result<std::optional<std::string>> get(const std::string& path);

  const std::string& service() const { return service_; }

 private:
  Result<> renew_token();

  const bool disabled_;
  const std::string service_;  // http://host
  HttpClient http_;
  std::string token_;
  std::chrono::steady_clock::time_point token_until_{};
};

}  // namespace pscloud
