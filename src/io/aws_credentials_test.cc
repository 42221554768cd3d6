#include "io/aws_credentials.h"

#include <fmt/chrono.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>

#include "io/scripted_http_server.h"

namespace pscloud {
namespace {

using testing::HasSubstr;
using testing::Not;

class AwsCredentialsTest : public testing::Test {
 protected:
  AwsCredentialsTest()
      : folder_(std::filesystem::path(testing::TempDir()) /
                testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::create_directories(folder_ / ".aws");
    variables_ = {{"HOME", folder_.string()}, {"AWS_EC2_METADATA_DISABLED", "true"}};
  }
  ~AwsCredentialsTest() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) { std::ofstream(folder_ / name) << text; }
  AwsVariables environment() {
    return [this](const char* name) {
      const auto found = variables_.find(name);
      return found == variables_.end() ? "" : found->second;
    };
  }
  Result<AwsCredentials> get() { return AwsCredentialSource(environment()).get(); }

  const std::filesystem::path folder_;
  std::map<std::string, std::string> variables_;
};

TEST_F(AwsCredentialsTest, VariablesComeFirst) {
  write(".aws/credentials", "[default]\naws_access_key_id=B\naws_secret_access_key=s\n");
  variables_["AWS_ACCESS_KEY_ID"] = "A";
  variables_["AWS_SECRET_ACCESS_KEY"] = "secret";
  variables_["AWS_SESSION_TOKEN"] = "token";
  const AwsCredentials found = get().value();
  EXPECT_EQ(found.access_key_id, "A");
  EXPECT_EQ(found.secret_access_key, "secret");
  EXPECT_EQ(found.session_token, "token");
}

TEST_F(AwsCredentialsTest, HalfAPairOfVariablesIsAnError) {
  variables_["AWS_SECRET_ACCESS_KEY"] = "very secret";
  const Error error = get().error();
  EXPECT_EQ(error.code, Code::kInvalid);
  EXPECT_EQ(error.message, "AWS_SECRET_ACCESS_KEY is set, but not AWS_ACCESS_KEY_ID");
}

TEST_F(AwsCredentialsTest, ProfilesAreRead) {
  write(".aws/credentials",
        "# comment\r\n[default]\r\naws_access_key_id = A\r\naws_secret_access_key = s=+/1\r\n"
        "[blue]\naws_access_key_id=B\naws_secret_access_key=s2\naws_session_token=t\n");
  EXPECT_EQ(get().value().access_key_id, "A");
  EXPECT_EQ(get().value().secret_access_key, "s=+/1");
  variables_["AWS_PROFILE"] = "blue";
  EXPECT_EQ(get().value().access_key_id, "B");
  EXPECT_EQ(get().value().session_token, "t");
  variables_["AWS_PROFILE"] = "green";
  EXPECT_THAT(get().error().message, HasSubstr("AWS_PROFILE is green, but neither "));
}

TEST_F(AwsCredentialsTest, FilesMayStandElsewhere) {
  write("mine", "[default]\naws_access_key_id=A\naws_secret_access_key=s\n");
  variables_["AWS_SHARED_CREDENTIALS_FILE"] = (folder_ / "mine").string();
  EXPECT_EQ(get().value().access_key_id, "A");
}

TEST_F(AwsCredentialsTest, WithoutAnyItSaysWhereTheyWereLookedFor) {
  const Error error = get().error();
  EXPECT_EQ(error.code, Code::kInvalid);
  EXPECT_THAT(error.message, HasSubstr("AWS_ACCESS_KEY_ID is not set"));
  EXPECT_THAT(error.message, HasSubstr(".aws/credentials has no profile default"));
}

TEST_F(AwsCredentialsTest, RegionAndEndpointHaveTheirOrder) {
  EXPECT_EQ(aws_region(environment()).value(), "us-east-1");
  EXPECT_EQ(aws_endpoint(environment(), "S3").value(), "");
  write(".aws/config", "[default]\nregion = eu-west-1\n[profile blue]\nregion=eu-west-2\ns3 =\n  region = nested\n");
  EXPECT_EQ(aws_region(environment()).value(), "eu-west-1");
  variables_["AWS_PROFILE"] = "blue";
  EXPECT_EQ(aws_region(environment()).value(), "eu-west-2");
  variables_["AWS_DEFAULT_REGION"] = "ap-south-1";
  EXPECT_EQ(aws_region(environment()).value(), "ap-south-1");
  variables_["AWS_REGION"] = "us-west-1";
  EXPECT_EQ(aws_region(environment()).value(), "us-west-1");
  variables_["AWS_ENDPOINT_URL"] = "http://all:1/";
  EXPECT_EQ(aws_endpoint(environment(), "S3").value(), "http://all:1");
  variables_["AWS_ENDPOINT_URL_S3"] = "https://s3:2";
  EXPECT_EQ(aws_endpoint(environment(), "S3").value(), "https://s3:2");
  variables_["AWS_ENDPOINT_URL_S3"] = "s3:2";
  EXPECT_EQ(aws_endpoint(environment(), "S3").error().code, Code::kInvalid);
}

// The metadata service of an instance; keys are numbered, and good for `minutes`.
std::string metadata(const std::string& request, int number, int minutes) {
  using Server = ScriptedHttpServer;
  if (request.starts_with("PUT /latest/api/token ")) {
    return request.find("x-aws-ec2-metadata-token-ttl-seconds: ") == std::string::npos ? Server::text(400, "")
                                                                                       : Server::text(200, "tok");
  }
  if (request.find("x-aws-ec2-metadata-token: tok") == std::string::npos) return Server::text(401, "");
  if (request.starts_with("GET /latest/meta-data/iam/security-credentials/ ")) return Server::text(200, "role-1\n");
  if (!request.starts_with("GET /latest/meta-data/iam/security-credentials/role-1 ")) return Server::text(404, "");
  const auto expires = std::chrono::system_clock::now() + std::chrono::minutes(minutes);
  const std::string time =
      fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::chrono::system_clock::to_time_t(expires)));
  return Server::text(200, fmt::format("{{\n \"Code\" : \"Success\",\n \"AccessKeyId\" : \"A{}\",\n"
                                       "\"SecretAccessKey\" : \"s\\/1\", \"Token\" : \"t\", \"Expiration\" : \"{}\"}}",
                                       number, time));
}

TEST_F(AwsCredentialsTest, TheRoleOfAnInstanceIsUsedAndRenewedBeforeItExpires) {
  std::atomic<int> minutes = 3;
  std::atomic<int> number = 0;
  ScriptedHttpServer server([&](const std::string& request) {
    if (request.find("/role-1 ") != std::string::npos) ++number;
    return metadata(request, number, minutes);
  });
  variables_["AWS_EC2_METADATA_DISABLED"] = "";
  variables_["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = server.url();
  AwsCredentialSource source(environment());
  const AwsCredentials first = source.get().value();
  EXPECT_EQ(first.access_key_id, "A1");
  EXPECT_EQ(first.secret_access_key, "s/1");
  EXPECT_EQ(first.session_token, "t");
  EXPECT_EQ(first.source, "instance's role role-1");
  minutes = 60;
  EXPECT_EQ(source.get().value().access_key_id, "A2");  // the first were about to expire
  EXPECT_EQ(source.get().value().access_key_id, "A2");
}

TEST_F(AwsCredentialsTest, NonsenseOfTheMetadataServiceIsNotShown) {
  ScriptedHttpServer server([](const std::string& request) {
    const bool keys = request.find("/role-1 ") != std::string::npos;
    return keys ? ScriptedHttpServer::text(200, "{\"SecretAccessKey\": \"hidden\", 7") : metadata(request, 1, 60);
  });
  variables_["AWS_EC2_METADATA_DISABLED"] = "";
  variables_["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = server.url();
  const Error error = get().error();
  EXPECT_EQ(error.code, Code::kCorrupt);
  EXPECT_THAT(error.message, Not(HasSubstr("hidden")));
}

}  // namespace
}  // namespace pscloud
