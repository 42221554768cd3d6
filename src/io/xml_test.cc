#include "io/xml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pscloud {
namespace {

TEST(Xml, GivesElementsAndTheirText) {
  const XmlElement root = parse_xml(
                              "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                              "<List xmlns='http://x/'><Key>a &amp; b&#x20;\u1234</Key><Empty/>\n"
                              "<Key a = \"1\" >c&#228;&lt;&gt;&quot;&apos;</Key ></List>\n")
                              .value();
  EXPECT_EQ(root.name, "List");
  ASSERT_EQ(root.children.size(), 3u);
  EXPECT_EQ(root.text_of("Key"), "a & b \u1234");
  EXPECT_EQ(root.children[2].text, "c\u00e4<>\"'");
  EXPECT_NE(root.child("Empty"), nullptr);
  EXPECT_EQ(root.text_of("None"), "");
}

TEST(Xml, WhatIsWrongIsRefused) {
  for (const char* text : {"",
                           "text",
                           "<a>",
                           "<a></b>",
                           "<a></a>more",
                           "<a b></a>",
                           "<a b=1></a>",
                           "<a b=\"1></a>",
                           "<a>&nbsp;</a>",
                           "<a>&#0;</a>",
                           "<a>&#xd800;</a>",
                           "<a>&#x110000;</a>",
                           "<a>&#99999999999;</a>",
                           "<a>&#65</a>",
                           "<a>\xff</a>",
                           "<!DOCTYPE a><a/>",
                           "<a><!-- --></a>",
                           "<a><![CDATA[]]></a>",
                           "<?xml",
                           "<a/><b/>",
                           "<a\"b\"></a>"}) {
    const auto parsed = parse_xml(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, Code::kCorrupt) << text;
  }
}

TEST(Xml, DepthIsLimited) {
  const auto nested = [](int depth) {
    std::string text;
    for (int i = 0; i < depth; ++i) text += "<a>";
    for (int i = 0; i < depth; ++i) text += "</a>";
    return text;
  };
  EXPECT_TRUE(parse_xml(nested(32)));
  EXPECT_FALSE(parse_xml(nested(33)));
  EXPECT_FALSE(parse_xml(nested(1000000)));
}

}  // namespace
}  // namespace pscloud
