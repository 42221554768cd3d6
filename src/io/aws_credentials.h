#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "io/aws_signature.h"
#include "pscloud/error.h"

namespace pscloud {

// The value of an environment variable; empty if it is not set, which AWS's programs take for the same. Thread-safe.
using AwsVariables = std::function<std::string(const char* name)>;
AwsVariables process_aws_variables();

// Where AWS's programs look: AWS_REGION, AWS_DEFAULT_REGION, `region` of the profile in the config file; else
// us-east-1.
Result<std::string> aws_region(const AwsVariables& environment);
// Of a service, "S3" or "EC2": AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, `endpoint_url` of the profile; empty for Amazon's
// own.
Result<std::string> aws_endpoint(const AwsVariables& environment, const std::string& service);
// AWS_MAX_ATTEMPTS: how often a request is sent at most; `otherwise` if it is not set, or makes no sense.
int aws_tries(const AwsVariables& environment, int otherwise);

// Finds the keys that requests are signed by, in the order of AWS's programs: AWS_ACCESS_KEY_ID and its companions; the
// profile AWS_PROFILE, or "default", of ~/.aws/credentials and ~/.aws/config (AWS_SHARED_CREDENTIALS_FILE and
// AWS_CONFIG_FILE name others); the role of the EC2 instance this runs on (IMDSv2). Thread-safe.
class AwsCredentialSource {
 public:
  explicit AwsCredentialSource(AwsVariables environment, std::function<bool()> cancelled = {});

  // Keys that are good for some minutes: those of a role are renewed in time. kInvalid if there are none, and then says
  // where they were looked for.
  Result<AwsCredentials> get() EXCLUDES(mutex_);

 private:
  Result<AwsCredentials> find() const;
  Result<std::optional<AwsCredentials>> of_instance() const;

  const AwsVariables environment_;
  const std::function<bool()> cancelled_;
  Mutex mutex_;
  std::optional<AwsCredentials> known_ GUARDED_BY(mutex_);
};

}  // namespace pscloud
