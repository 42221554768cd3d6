#include "io/aws_credentials.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <map>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "io/file_store.h"
#include "io/http_client.h"
#include "io/instance_metadata.h"

namespace pscloud {
namespace {

constexpr uint64_t kProfileBytesMax = 1 << 20;
constexpr std::chrono::minutes kRenewBefore{5};
constexpr int kTriesMax = 100;

using Fields = std::map<std::string, std::string>;

std::string_view without_spaces(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r";
  const size_t begin = std::min(text.find_first_not_of(kSpaces), text.size());
  text.remove_prefix(begin);
  return text.substr(0, text.find_last_not_of(kSpaces) + 1);
}

// The fields of [name] or [profile name] in a file of AWS's; none if the file or the section is not there.
Result<Fields> read_profile(const std::string& path, const std::string& name) {
  const auto store = make_local_store();
  auto input = store->open(path, {});
  if (!input && input.error().code == Code::kNotFound) return Fields{};
  if (!input) return input.error();
  const std::string text = TRY(read_all(**input, kProfileBytesMax).at(path));
  Fields fields;
  bool inside = false;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view whole = std::string_view(text).substr(at, end - at);
    at = end + 1;
    const std::string_view line = without_spaces(whole);
    const bool indented =
        !whole.empty() && (whole.front() == ' ' || whole.front() == '\t');  // belongs to another field
    if (line.empty() || line.front() == '#' || line.front() == ';' || indented) continue;
    if (line.front() == '[' && line.back() == ']') {
      std::string_view section = without_spaces(line.substr(1, line.size() - 2));
      if (section.starts_with("profile ")) section = without_spaces(section.substr(8));
      inside = section == name;
    } else if (const size_t equals = line.find('='); inside && equals != std::string_view::npos) {
      fields[std::string(without_spaces(line.substr(0, equals)))] = without_spaces(line.substr(equals + 1));
    }
  }
  return fields;
}

std::string profile_name(const AwsVariables& environment) {
  const std::string name = environment("AWS_PROFILE");
  return name.empty() ? "default" : name;
}

std::string aws_file(const AwsVariables& environment, const char* variable, const char* name) {
  const std::string path = environment(variable);
  return path.empty() ? fmt::format("{}/.aws/{}", environment("HOME"), name) : path;
}

std::string config_path(const AwsVariables& environment) { return aws_file(environment, "AWS_CONFIG_FILE", "config"); }

// The first of these that says something: variables, then a field of the profile.
Result<std::string> setting(const AwsVariables& environment, std::initializer_list<const char*> variables,
                            const std::string& field) {
  for (const char* variable : variables) {
    if (std::string value = environment(variable); !value.empty()) return value;
  }
  Fields fields = TRY(read_profile(config_path(environment), profile_name(environment)));
  return fields[field];
}

Result<std::optional<AwsCredentials>> of_variables(const AwsVariables& environment) {
  AwsCredentials found{.access_key_id = environment("AWS_ACCESS_KEY_ID"),
                       .secret_access_key = environment("AWS_SECRET_ACCESS_KEY"),
                       .session_token = environment("AWS_SESSION_TOKEN"),
                       .source = "AWS_ACCESS_KEY_ID"};
  if (found.access_key_id.empty() && found.secret_access_key.empty()) return std::nullopt;
  if (found.access_key_id.empty()) return invalid("AWS_SECRET_ACCESS_KEY is set, but not AWS_ACCESS_KEY_ID");
  if (found.secret_access_key.empty()) return invalid("AWS_ACCESS_KEY_ID is set, but not AWS_SECRET_ACCESS_KEY");
  return found;
}

Result<std::optional<AwsCredentials>> of_profile(const AwsVariables& environment) {
  const std::string profile = profile_name(environment);
  const std::string shared = aws_file(environment, "AWS_SHARED_CREDENTIALS_FILE", "credentials");
  bool known = false;
  for (const std::string& path : {shared, config_path(environment)}) {
    Fields fields = TRY(read_profile(path, profile));
    known = known || !fields.empty();
    AwsCredentials found{.access_key_id = fields["aws_access_key_id"],
                         .secret_access_key = fields["aws_secret_access_key"],
                         .session_token = fields["aws_session_token"],
                         .source = fmt::format("profile {} of {}", profile, path)};
    if (found.access_key_id.empty() && found.secret_access_key.empty()) continue;
    if (found.access_key_id.empty() || found.secret_access_key.empty()) {
      return invalid("{}: the profile {} has only one of aws_access_key_id and aws_secret_access_key", path, profile);
    }
    return found;
  }
  if (!environment("AWS_PROFILE").empty() && !known) {
    return invalid("AWS_PROFILE is {}, but neither {} nor {} has such a profile", profile, shared,
                   config_path(environment));
  }
  return std::nullopt;
}

// A JSON object of texts, as the metadata service gives it. Escapes other than of quotes, slashes and backslashes,
// which keys and dates do not have, are refused.
Result<Fields> read_flat_json(std::string_view text) {
  size_t at = 0;
  const auto skip = [&] { at = std::min(text.find_first_not_of(" \t\r\n", at), text.size()); };
  const auto take = [&](char c) {
    skip();
    if (at == text.size() || text[at] != c) return false;
    ++at;
    return true;
  };
  const auto quoted_text = [&](std::string& out) {
    if (!take('"')) return false;
    for (; at < text.size() && text[at] != '"'; ++at) {
      if (text[at] == '\\') {
        ++at;
        if (at == text.size() || std::string_view("\"\\/").find(text[at]) == std::string_view::npos) return false;
      }
      out += text[at];
    }
    return take('"');
  };
  Fields fields;
  bool good = take('{');
  for (bool more = good; good && more; more = take(',')) {
    std::string name;
    std::string value;
    good = quoted_text(name) && take(':') && quoted_text(value);
    fields[name] = value;
  }
  if (!good || !take('}')) return corrupt("the instance's metadata service answers with something else than keys");
  return fields;
}

Result<std::chrono::sys_seconds> time_of(const std::string& text) {
  std::tm parts{};
  const char* end = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  if (end == nullptr || *end != '\0') return corrupt("'{}' is no time", text);
  return std::chrono::sys_seconds(std::chrono::seconds(::timegm(&parts)));
}

std::chrono::sys_seconds now_in_seconds() {
  return std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
}

}  // namespace

AwsVariables process_aws_variables() {
  return [](const char* name) -> std::string {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets variables here
    return value == nullptr ? "" : value;
  };
}

Result<std::string> aws_region(const AwsVariables& environment) {
  const std::string region = TRY(setting(environment, {"AWS_REGION", "AWS_DEFAULT_REGION"}, "region"));
  return region.empty() ? "us-east-1" : region;
}

Result<std::string> aws_endpoint(const AwsVariables& environment, const std::string& service) {
  const std::string own = "AWS_ENDPOINT_URL_" + service;
  std::string url = TRY(setting(environment, {own.c_str(), "AWS_ENDPOINT_URL"}, "endpoint_url"));
  while (url.ends_with('/')) url.pop_back();
  if (url.empty() || url.starts_with("http://") || url.starts_with("https://")) return url;
  return invalid("the endpoint {} must begin with https:// or http://", url);
}

int aws_tries(const AwsVariables& environment, int otherwise) {
  int tries = otherwise;
  parse_number(environment("AWS_MAX_ATTEMPTS"), 1, kTriesMax, tries);
  return tries;
}

AwsCredentialSource::AwsCredentialSource(AwsVariables environment, std::function<bool()> cancelled)
    : environment_(std::move(environment)), cancelled_(std::move(cancelled)) {}

Result<AwsCredentials> AwsCredentialSource::get() {
  MutexLock lock(mutex_);
  const auto now = now_in_seconds();
  if (known_ && known_->expires - kRenewBefore > now) return *known_;
  auto found = find();
  if (!found) {
    if (!known_ || known_->expires <= now) return found;
    log_warning("the keys of the {} expire soon, and there are no new ones: {}", known_->source, found.error().message);
    return *known_;
  }
  known_ = *found;
  return found;
}

Result<AwsCredentials> AwsCredentialSource::find() const {
  if (auto found = TRY(of_variables(environment_))) return *found;
  if (auto found = TRY(of_profile(environment_))) return *found;
  if (auto found = TRY(of_instance())) return *found;
  return invalid(
      "no AWS keys: AWS_ACCESS_KEY_ID is not set, {} has no profile {}, and this is no EC2 instance with a role",
      aws_file(environment_, "AWS_SHARED_CREDENTIALS_FILE", "credentials"), profile_name(environment_));
}

Result<std::optional<AwsCredentials>> AwsCredentialSource::of_instance() const {
  InstanceMetadata metadata(environment_, cancelled_);
  if (!metadata.is_there()) return std::nullopt;
  const std::string folder = "iam/security-credentials/";
  const std::string roles = TRY(metadata.get(folder)).value_or("");
  const std::string role(without_spaces(roles.substr(0, roles.find('\n'))));
  if (role.empty()) return std::nullopt;  // one without a role
  const auto keys = TRY(metadata.get(folder + role));
  if (!keys) return unavailable("{}: no keys for the role {}", host_of(metadata.service()), role);
  Fields fields = TRY(read_flat_json(*keys));
  AwsCredentials found{.access_key_id = fields["AccessKeyId"],
                       .secret_access_key = fields["SecretAccessKey"],
                       .session_token = fields["Token"],
                       .source = fmt::format("instance's role {}", role)};
  found.expires = TRY(time_of(fields["Expiration"]).at(found.source));
  if (found.access_key_id.empty() || found.secret_access_key.empty()) {
    return corrupt("{}: the role {} comes without keys", host_of(metadata.service()), role);
  }
  return found;
}

}  // namespace pscloud
