#include "io/aws_signature.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pscloud {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

const std::string kEmptyHash = sha256_hex("");

// The Authorization header, by the keys, the place and the minute that all cases of AWS's signing test suite have
// (github.com/awslabs/aws-c-auth, tests/aws-signing-test-suite/v4: the names of the tests are theirs).
std::string suite(AwsRequest request, const std::string& session_token = "") {
  request.host = "example.amazonaws.com";
  if (request.payload_hash.empty()) request.payload_hash = kEmptyHash;
  const AwsCredentials credentials{.access_key_id = "AKIDEXAMPLE",
                                   .secret_access_key = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
                                   .session_token = session_token};
  using namespace std::chrono_literals;
  const auto now = std::chrono::sys_days(2015y / 8 / 30) + 12h + 36min;
  return aws_signature(request, credentials, "us-east-1", "service", now).back().second;
}

TEST(AwsSignature, GetVanilla) {
  EXPECT_EQ(suite({}),
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
            "SignedHeaders=host;x-amz-date, "
            "Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
}

TEST(AwsSignature, GetVanillaQueryOrderKeyCase) {
  EXPECT_THAT(suite({.query = {{"Param2", "value2"}, {"Param1", "value1"}}}),
              EndsWith("=b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"));
}

TEST(AwsSignature, GetVanillaQueryOrderEncoded) {
  EXPECT_THAT(suite({.query = {{"Param-3", "Value3"}, {"Param", "Value2"}, {"\u1234", "Value1"}}}),
              EndsWith("=371d3713e185cc334048618a97f809c9ffe339c62934c032af5a0e595648fcac"));
}

TEST(AwsSignature, GetVanillaUtf8Query) {
  EXPECT_THAT(suite({.query = {{"\u1234", "bar"}}}),
              EndsWith("=2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04"));
}

TEST(AwsSignature, GetVanillaQueryUnreserved) {
  const std::string all = "-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  EXPECT_THAT(suite({.query = {{all, all}}}),
              EndsWith("=9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197"));
}

TEST(AwsSignature, GetUtf8) {
  EXPECT_THAT(suite({.path = "/\u1234"}),
              EndsWith("=8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"));
}

TEST(AwsSignature, GetSpaceUnnormalized) {
  EXPECT_THAT(suite({.path = "/example space/"}),
              EndsWith("=652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741"));
}

TEST(AwsSignature, GetHeaderValueTrim) {
  const std::string signature = suite({.headers = {{"my-header1", " value1"}, {"my-header2", " \"a   b   c\""}}});
  EXPECT_THAT(signature, HasSubstr("SignedHeaders=host;my-header1;my-header2;x-amz-date,"));
  EXPECT_THAT(signature, EndsWith("=acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"));
}

TEST(AwsSignature, PostXWwwFormUrlencoded) {
  const std::string hash = sha256_hex("Param1=value1");
  EXPECT_THAT(suite({.method = "POST",
                     .headers = {{"content-type", "application/x-www-form-urlencoded"},
                                 {"content-length", "13"},
                                 {"x-amz-content-sha256", hash}},
                     .payload_hash = hash}),
              EndsWith("=d3875051da38690788ef43de4db0d8f280229d82040bfac253562e56c3f20e0b"));
}

TEST(AwsSignature, GetVanillaWithSessionToken) {
  EXPECT_THAT(suite({}, "6e86291e8372ff2a2260956d9b8aae1d763fbf315fa00fa31553b73ebf194267"),
              EndsWith("=07ec1639c89043aa0e3e2de82b96708f198cceab042d4a97044c66dd9f74e7f8"));
}

// The examples of "Authenticating Requests: Using the Authorization Header" in the API reference of Amazon S3.
std::string s3_example(AwsRequest request) {
  request.host = "examplebucket.s3.amazonaws.com";
  request.headers.emplace_back("x-amz-content-sha256", request.payload_hash);
  const AwsCredentials credentials{.access_key_id = "AKIAIOSFODNN7EXAMPLE",
                                   .secret_access_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"};
  using namespace std::chrono_literals;
  return aws_signature(request, credentials, "us-east-1", "s3", std::chrono::sys_days(2013y / 5 / 24)).back().second;
}

TEST(AwsSignature, S3GetObjectWithARange) {
  EXPECT_THAT(s3_example({.path = "/test.txt", .headers = {{"range", "bytes=0-9"}}, .payload_hash = kEmptyHash}),
              EndsWith("=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"));
}

TEST(AwsSignature, S3PutObjectWithAnOddKey) {
  EXPECT_THAT(
      s3_example({.method = "PUT",
                  .path = "/test$file.text",
                  .headers = {{"date", "Fri, 24 May 2013 00:00:00 GMT"}, {"x-amz-storage-class", "REDUCED_REDUNDANCY"}},
                  .payload_hash = sha256_hex("Welcome to Amazon S3.")}),
      EndsWith("=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"));
}

TEST(AwsSignature, S3QueryWithoutAValue) {
  EXPECT_THAT(s3_example({.query = {{"lifecycle", ""}}, .payload_hash = kEmptyHash}),
              EndsWith("=fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"));
}

TEST(AwsSignature, S3ListObjects) {
  EXPECT_THAT(s3_example({.query = {{"prefix", "J"}, {"max-keys", "2"}}, .payload_hash = kEmptyHash}),
              EndsWith("=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"));
}

}  // namespace
}  // namespace pscloud
