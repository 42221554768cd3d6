#include "io/s3_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/s3_client.h"
#include "io/scripted_http_server.h"

// Whole stores are tried against a server that checks signatures: tests/cluster/s3_test.py.

namespace pscloud {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

AwsVariables signed_in_to(const std::string& endpoint) {
  return [endpoint](const char* variable) -> std::string {
    const std::string name = variable;
    if (name == "AWS_ENDPOINT_URL_S3") return endpoint;
    if (name == "AWS_ACCESS_KEY_ID") return "A";
    if (name == "AWS_SECRET_ACCESS_KEY") return "s";
    return "";
  };
}

TEST(S3Name, HasABucketAndAKey) {
  EXPECT_EQ(s3_name_of("s3://bucket/a//b c").value().key, "a//b c");
  EXPECT_EQ(s3_name_of("s3://bucket").value().bucket, "bucket");
  for (const char* uri :
       {"s3://", "s3:///key", "s3://x/key", "s3://evil.com:80/key", "s3://a@bc/key", "http://bucket/key"}) {
    EXPECT_EQ(s3_name_of(uri).error().code, Code::kInvalid) << uri;
  }
}

TEST(S3Place, IsAmazonsUnlessThereIsAnEndpoint) {
  const auto url = [](const char* bucket, const char* region, const char* endpoint) {
    const S3Place place = s3_place(bucket, region, endpoint);
    return place.scheme + "://" + place.host + place.path + "/";
  };
  EXPECT_EQ(url("logs", "eu-west-1", ""), "https://logs.s3.eu-west-1.amazonaws.com/");
  EXPECT_EQ(url("logs", "cn-north-1", ""), "https://logs.s3.cn-north-1.amazonaws.com.cn/");
  EXPECT_EQ(url("my.logs", "eu-west-1", ""), "https://s3.eu-west-1.amazonaws.com/my.logs/");
  EXPECT_EQ(url("logs", "us-east-1", "http://127.0.0.1:9000"), "http://127.0.0.1:9000/logs/");
  EXPECT_EQ(url("logs", "us-east-1", "https://store:443/s3"), "https://store/s3/logs/");
}

TEST(S3Page, GivesKeysFoldersAndWhereItGoesOn) {
  const S3Page page = parse_s3_page(
                          "<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>"
                          "<NextContinuationToken>t/1=</NextContinuationToken>"
                          "<Contents><Key>a+b%2Bc%25%0A</Key><Size>7</Size><ETag>&quot;0f-2&quot;</ETag></Contents>"
                          "<CommonPrefixes><Prefix>d%20e/</Prefix></CommonPrefixes></ListBucketResult>")
                          .value();
  ASSERT_EQ(page.objects.size(), 1u);
  EXPECT_EQ(page.objects[0].key, "a b+c%\n");
  EXPECT_EQ(page.objects[0].size, 7u);
  EXPECT_EQ(page.objects[0].etag, "0f-2");
  EXPECT_THAT(page.prefixes, ElementsAre("d e/"));
  EXPECT_EQ(page.next, "t/1=");
}

TEST(S3Page, KeysThatAreNotEncodedStayAsTheyAre) {
  const auto page =
      parse_s3_page("<ListBucketResult><Contents><Key>a+b%2B</Key><Size>7</Size></Contents></ListBucketResult>");
  EXPECT_EQ(page.value().objects.at(0).key, "a+b%2B");
}

TEST(S3Page, NonsenseIsRefused) {
  for (const char* text : {"<Error/>", "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
                           "<ListBucketResult><Contents><Key>a-key-that-needs-memory-of-its-own</Key><Size>x</Size></"
                           "Contents></ListBucketResult>",
                           "<ListBucketResult><EncodingType>url</EncodingType><Contents><Key>%4</Key><Size>1</Size></"
                           "Contents></ListBucketResult>",
                           "<ListBucketResult><EncodingType>url</EncodingType><Contents><Key>%zz</Key><Size>1</Size></"
                           "Contents></ListBucketResult>"}) {
    EXPECT_EQ(parse_s3_page(text).error().code, Code::kCorrupt) << text;
  }
}

TEST(S3Store, KeysAreEncodedOnceAndPathsStayAsTheyAre) {
  ScriptedHttpServer server([](const std::string&) { return ScriptedHttpServer::text(200, "", "ETag: \"1\"\r\n"); });
  const auto store = make_s3_store(signed_in_to(server.url()));
  ASSERT_TRUE(store->create("s3://bucket/a/../b c+\u00e4%")->get()->commit());
  const std::string request = server.requests().at(0);
  EXPECT_THAT(request, StartsWith("PUT /bucket/a/../b%20c%2B%C3%A4%25 HTTP/1.1\r\n"));
  EXPECT_THAT(request, HasSubstr("SignedHeaders=host;x-amz-content-sha256;x-amz-date,"));
}

TEST(S3Store, AListOfOtherFoldersIsRefused) {
  ScriptedHttpServer server([](const std::string&) {
    return ScriptedHttpServer::text(200,
                                    "<ListBucketResult><Contents><Key>elsewhere/a</Key><Size>1</Size></Contents>"
                                    "</ListBucketResult>");
  });
  const auto files = make_s3_store(signed_in_to(server.url()))->list("s3://bucket/here");
  EXPECT_EQ(files.error().code, Code::kCorrupt);
}

TEST(S3Store, ASuccessThatIsAnErrorIsTriedAgain) {
  int completions = 0;
  ScriptedHttpServer server([&](const std::string& request) {
    if (request.starts_with("POST /bucket/key?uploads=")) {
      return ScriptedHttpServer::text(200, "<Result><UploadId>u1</UploadId></Result>");
    }
    if (!request.starts_with("POST /bucket/key?uploadId=u1"))
      return ScriptedHttpServer::text(200, "", "ETag: \"1\"\r\n");
    const bool good = ++completions == 2;
    return ScriptedHttpServer::text(
        200, good ? "<CompleteMultipartUploadResult/>" : "<Error><Code>InternalError</Code></Error>");
  });
  const auto store = make_s3_store(signed_in_to(server.url()));
  const auto output = store->create("s3://bucket/key").value();
  ASSERT_TRUE(output->write(std::string((8 << 20) + 1, 'x')));
  const auto done = output->commit();
  EXPECT_TRUE(done) << done.error().message;
  EXPECT_EQ(completions, 2);
}

}  // namespace
}  // namespace pscloud
