#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_value.h"
#include "io/aws_credentials.h"
#include "io/http_client.h"
#include "io/xml.h"

namespace pscloud {

// The parameters of a call of EC2's, as a form: "Filter.1.Name=...&Filter.1.Value.1=...".
class Ec2Form {
 public:
  Ec2Form& set(std::string name, std::string value);
  // Only what has one of these values.
  Ec2Form& filter(const std::string& name, const std::vector<std::string>& values);
  // Things of these types get the tags in the moment they are made: there is none that only a later call would mark.
  Ec2Form& tags(const std::vector<std::string>& types, const TextPairs& tags);

  const TextPairs& pairs() const { return pairs_; }

 private:
  TextPairs pairs_;
  int filters_ = 0;
  int tagged_types_ = 0;
};

// What EC2 says to a call.
struct Ec2Answer {
  XmlElement body = {};
  std::string refused = {};  // its code, "InvalidGroup.NotFound"; empty: it was done
  Error error = {};          // the same for people, when it was refused
};

// Whether the same call may succeed later: EC2 throttles, has an error of its own, or is not reached.
bool may_pass(const Error& error);

struct AwsApiOptions {
  AwsVariables environment = process_aws_variables();
  std::function<bool()> cancelled = {};
  std::string region = {};                        // empty: as the environment says
  std::string endpoint = {};                      // of EC2; empty: as the environment says
  std::chrono::milliseconds call_timeout{60000};  // of one try of a call
  std::chrono::milliseconds to_be_known{60000};   // how long EC2 may not know what it has just made
};

// Signs calls of EC2 and of its neighbours, sends them, again if they are throttled, and puts refusals into words.
// Thread-safe.
class AwsApi {
 public:
  static Result<AwsApi> open(AwsApiOptions options);

  const std::string& region() const { return region_; }
  const std::string& endpoint() const { return endpoint_; }

  // An answer may be a refusal; kUnavailable, kTimeout or kFailed (cancelled) if there is none, and then nobody knows
  // whether it was done.
  Result<Ec2Answer> ask(const std::string& action, const Ec2Form& form = {});
  // The same for a call that names things which were just made. EC2 may not know them yet: as long as `is_unknown` says
  // that of the code of its refusal, the call is made again, until the time for that is over.
  Result<Ec2Answer> ask_of_new(const std::string& action, const Ec2Form& form,
                               const std::function<bool(const std::string& refused)>& is_unknown);
  // The same as ask() when a refusal is an error.
  Result<XmlElement> call(const std::string& action, const Ec2Form& form = {});
  // All elements of the list `set` of all pages.
  Result<std::vector<XmlElement>> list(const std::string& action, const std::string& set, const Ec2Form& form = {});

  // The same of the service that lends keys, STS.
  Result<XmlElement> call_sts(const std::string& action, const Ec2Form& form);

  // Services that speak JSON: "pricing" with "AWSPriceListService.GetProducts", say. Sent twice at most: what they know
  // is good to know, and no more. kInvalid names the permission that is lacking.
  Result<JsonValue> ask_json(const std::string& service, const std::string& region, const std::string& target,
                             const std::string& body);

 private:
  AwsApi(AwsApiOptions options, std::string region, std::string endpoint);

  struct Request {
    std::string url;
    std::string host;
    TextPairs headers;
    std::string body;
    std::string region;
    std::string service;
  };
  // One that speaks in forms.
  struct FormService {
    const char* name;  // "ec2"
    const char* words;
    const char* version;
    std::string url;
  };
  Result<Ec2Answer> ask(const FormService& service, const std::string& action, const Ec2Form& form);
  Result<HttpResponse> send(HttpClient& http, const Request& request);
  std::string source_of_keys() const;
  Error explain(const FormService& service, const std::string& action, const HttpResponse& response,
                const XmlElement& said);

  AwsVariables environment_;
  std::function<bool()> cancelled_;
  std::string region_;
  std::string endpoint_;
  std::chrono::milliseconds to_be_known_;
  int tries_ = 1;
  std::unique_ptr<HttpClient> http_;
  std::unique_ptr<HttpClient> hasty_http_;
  std::unique_ptr<AwsCredentialSource> credentials_;
};

}  // namespace pscloud
