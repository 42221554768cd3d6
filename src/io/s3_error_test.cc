#include "io/s3_error.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pscloud {
namespace {

using testing::HasSubstr;

struct RefusalCase {
  int status;
  const char* code;
  Code wanted;
  const char* words;
};

TEST(S3Error, SaysWhatToDo) {
  const S3Call call{.name = {.bucket = "logs", .key = "a/b"}, .permission = "s3:GetObject"};
  const S3Caller caller{.region = "us-east-1", .host = "host", .keys = "AWS_ACCESS_KEY_ID"};
  for (const RefusalCase& one : {
           RefusalCase{404, "NoSuchKey", Code::kNotFound, "s3://logs/a/b: no such file"},
           {404, "NoSuchBucket", Code::kNotFound, "there is no bucket logs at host"},
           {403, "InvalidAccessKeyId", Code::kInvalid,
            "does not know the access key (it comes from AWS_ACCESS_KEY_ID)"},
           {403, "SignatureDoesNotMatch", Code::kInvalid, "the secret key is not the one of the access key"},
           {400, "ExpiredToken", Code::kInvalid, "get new keys"},
           {403, "AccessDenied", Code::kInvalid, "lack s3:GetObject on arn:aws:s3:::logs/a/b;"},
           {412, "PreconditionFailed", Code::kFailed, "has changed"},
           {503, "SlowDown", Code::kUnavailable, "status 503 SlowDown: words (8 tries)"},
           {400, "EntityTooLarge", Code::kFailed, "status 400 EntityTooLarge: words"},
       }) {
    const HttpResponse response{.status = one.status,
                                .body = fmt::format("<Error><Code>{}</Code><Message>words</Message></Error>", one.code),
                                .tries = 8};
    const Error error = s3_error(call, response, caller);
    EXPECT_EQ(error.code, one.wanted) << one.code;
    EXPECT_THAT(error.message, HasSubstr(one.words));
  }
}

TEST(S3Error, NamesTheRegionOfTheBucket) {
  const S3Call call{.name = {.bucket = "logs", .key = ""}, .permission = "s3:ListBucket"};
  const S3Caller caller{.region = "us-east-1", .host = "host", .keys = ""};
  const std::string wanted = "s3://logs/: the bucket is in eu-west-1, not in us-east-1: set AWS_REGION=eu-west-1";
  const HttpResponse redirection{.status = 301, .headers = {{"x-amz-bucket-region", "eu-west-1"}}};
  EXPECT_EQ(s3_error(call, redirection, caller).message, wanted);
  const HttpResponse malformed{
      .status = 400, .body = "<Error><Code>AuthorizationHeaderMalformed</Code><Region>eu-west-1</Region></Error>"};
  EXPECT_EQ(s3_error(call, malformed, caller).message, wanted);
}

TEST(S3Error, AWrongClockIsMeasured) {
  const S3Call call{.name = {.bucket = "logs", .key = "a"}};
  const HttpResponse response{.status = 403,
                              .headers = {{"date", "Sat, 01 Jan 2000 00:00:00 GMT"}},
                              .body = "<Error><Code>RequestTimeTooSkewed</Code></Error>"};
  EXPECT_THAT(s3_error(call, response, {}).message, HasSubstr(" s fast: set it right"));
}

}  // namespace
}  // namespace pscloud
