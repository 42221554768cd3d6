#include "io/config_file.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.pb.h>
#include <gtest/gtest.h>

#include "io/memory_store.h"
#include "io/test_compress.h"

namespace pscloud {
namespace {

using google::protobuf::FieldDescriptorProto;  // a message that has all kinds of fields

std::string refusal_of(std::string_view text) {
  FieldDescriptorProto message;
  const auto result = parse_config(text, "x.conf", message);
  if (result) return "";
  EXPECT_EQ(result.error().code, Code::kInvalid);
  return result.error().message;
}

TEST(ConfigFile, FieldsEnumsBlocksAndCommentsAreRead) {
  FieldDescriptorProto message;
  ASSERT_TRUE(parse_config("name : 'a' # comment\n number:7 type: TYPE_BOOL options { packed: true }", "x", message));
  EXPECT_EQ(message.name(), "a");
  EXPECT_EQ(message.number(), 7);
  EXPECT_EQ(message.type(), FieldDescriptorProto::TYPE_BOOL);
  EXPECT_TRUE(message.options().packed());
}

TEST(ConfigFile, AnUnknownFieldIsNamedWithItsPlaceAndTheNearest) {
  EXPECT_EQ(refusal_of("name: 'a'\n  numbr: 1"), "x.conf:2:3: there is no field numbr here; did you mean number?");
  EXPECT_EQ(refusal_of("options { pakced: true }"), "x.conf:1:11: there is no field pakced here; did you mean packed?");
  EXPECT_EQ(refusal_of("zzzzzzzzzzzz: 1"), "x.conf:1:1: there is no field zzzzzzzzzzzz here");
}

TEST(ConfigFile, AnUnknownValueIsNamedWithTheNearest) {
  EXPECT_EQ(refusal_of("type: TYPE_BOLO"), "x.conf:1:7: TYPE_BOLO is no value of type here; did you mean TYPE_BOOL?");
  EXPECT_EQ(refusal_of("name: '{' # {\n\toptions {\n\t\tctype: CROD\n\t}\n"),
            "x.conf:3:10: CROD is no value of ctype here; did you mean CORD?");
  EXPECT_EQ(refusal_of("options { jstype: STRING }"),
            "x.conf:1:19: STRING is no value of jstype here; did you mean JS_STRING?");
}

TEST(ConfigFile, OtherMistakesHaveTheirPlaceToo) {
  EXPECT_EQ(refusal_of("name: 'a'\nnumber: 'b'"), "x.conf:2:9: a whole number should stand here, not 'b'");
  EXPECT_EQ(refusal_of("number: 1\nnumber: 2"), "x.conf:2:1: number stands here a second time");
  EXPECT_EQ(refusal_of("options { lazy: true }\noptions { packed: true }"),
            "x.conf:2:1: options stands here a second time");
  EXPECT_EQ(refusal_of("options { packed: maybe }"), "x.conf:1:19: maybe is no value of packed here: true or false");
  EXPECT_EQ(refusal_of("options: 5"), "x.conf:1:10: \"{\" should stand here, not 5");
  EXPECT_EQ(refusal_of("type: }"), "x.conf:1:7: one of the field's values should stand here, not }");
  EXPECT_EQ(refusal_of("name: a"), "x.conf:1:7: a text in quotes should stand here, not a");
  EXPECT_EQ(refusal_of("name: 'a\n"), "x.conf:1:9: a text in quotes does not end in its line");
  EXPECT_EQ(refusal_of("5"), "x.conf:1:1: the name of a field should stand here, not 5");
  EXPECT_THAT(refusal_of(std::string(1 << 20, 'x')), testing::StartsWith("x.conf:1:1"));
  EXPECT_EQ(refusal_of("number: 99999999999"), "x.conf:1:9: 99999999999 is out of this field's range");
}

TEST(ConfigFile, ABlockThatIsNotClosedIsNamed) {
  EXPECT_EQ(refusal_of("name: 'a'\noptions {\n  packed: true\n"),
            "x.conf:4:1: the text ends here, and the block that begins at 2:9 has no }");
  EXPECT_EQ(refusal_of("number:"), "x.conf:1:8: the text ends where a whole number is missing");
  EXPECT_EQ(refusal_of("options { }\n}"), "x.conf:2:1: this } closes nothing");
}

TEST(ConfigFile, WhatAMessageMustHaveIsMissed) {
  google::protobuf::UninterpretedOption option;
  EXPECT_EQ(parse_config("name { name_part: 'a' }", "x.conf", option).error().message,
            "x.conf:1:1: missing: name[0].is_extension");
  EXPECT_EQ(parse_config("name { name_part: 'a' is_extension: true }\nname {}", "x.conf", option).error().message,
            "x.conf:2:1: missing: name[1].name_part, name[1].is_extension");
}

TEST(ConfigFile, AFileIsReadFromItsStore) {
  MemoryStore store({{"a.conf", "number: 3"}, {"b.conf.gz", gzip("number: 4")}, {"c.conf", "numbre: 3"}});
  FieldDescriptorProto message;
  ASSERT_TRUE(read_config(store, "a.conf", message));
  EXPECT_EQ(message.number(), 3);
  ASSERT_TRUE(read_config(store, "b.conf.gz", message));
  EXPECT_EQ(message.number(), 4);
  EXPECT_EQ(read_config(store, "c.conf", message).error().message,
            "c.conf:1:1: there is no field numbre here; did you mean number?");
  EXPECT_EQ(read_config(store, "d.conf", message).error().code, Code::kNotFound);
}

TEST(AppendConfig, AddsFieldsButChangesNone) {
  FieldDescriptorProto message;
  message.set_name("a");
  ASSERT_TRUE(append_config("number: 7", "--append", message));
  EXPECT_EQ(message.name(), "a");
  EXPECT_EQ(message.number(), 7);
  EXPECT_EQ(append_config("number: 8", "--append", message).error().message,
            "--append: the config has number already; to change a field of it: --set number...=VALUE");
  EXPECT_EQ(append_config("nmae: 'b'", "--append", message).error().message,
            "--append:1:1: there is no field nmae here; did you mean name?");
  EXPECT_EQ(message.number(), 7);
}

TEST(SetConfigField, SetsFieldsOfFieldsByTheirNames) {
  FieldDescriptorProto message;
  for (const char* one : {"number=7", "name=a b", "options.packed=true", "type=TYPE_BOOL"}) {
    const auto set = set_config_field(one, message);
    EXPECT_TRUE(set) << set.error().message;
  }
  EXPECT_EQ(message.number(), 7);
  EXPECT_EQ(message.name(), "a b");
  EXPECT_TRUE(message.options().packed());
  EXPECT_EQ(message.type(), FieldDescriptorProto::TYPE_BOOL);
}

TEST(SetConfigField, ARepeatedFieldHasThisValueAlone) {
  google::protobuf::EnumDescriptorProto message;
  message.add_reserved_name("a");
  ASSERT_TRUE(set_config_field("reserved_name=b", message));
  ASSERT_EQ(message.reserved_name_size(), 1);
  EXPECT_EQ(message.reserved_name(0), "b");
}

TEST(SetConfigField, MistakesAreNamed) {
  const auto refusal = [](const char* assignment) {
    FieldDescriptorProto message;
    return set_config_field(assignment, message).error().message;
  };
  EXPECT_EQ(refusal("number"), "'number' must be FIELD=VALUE");
  EXPECT_EQ(refusal("number.=1"), "'number.=1' must be FIELD=VALUE");
  EXPECT_EQ(refusal("nummer=1"), "nummer: there is no field nummer; did you mean number?");
  EXPECT_EQ(refusal("options.paked=1"), "options.paked: there is no field paked; did you mean packed?");
  EXPECT_EQ(refusal("options=1"), "options has fields of its own: name one of them");
  EXPECT_EQ(refusal("name.x=1"), "name.x: name has no fields that can be set");
  EXPECT_EQ(refusal("number=x"), "number: a whole number should stand here, not x");
}

TEST(ConfigFile, DifferencesAreNamedByTheirFields) {
  FieldDescriptorProto before;
  ASSERT_TRUE(parse_config("name: 'a' number: 7 options { packed: true }", "x", before));
  FieldDescriptorProto now;
  ASSERT_TRUE(parse_config(config_text(before), "x", now));
  EXPECT_EQ(config_differences(before, now), "");
  now.mutable_options()->set_lazy(false);  // its default
  EXPECT_EQ(config_differences(before, now), "");
  now.set_number(8);
  now.mutable_options()->clear_packed();
  EXPECT_EQ(config_differences(before, now), "modified: number: 7 -> 8, modified: options.packed: true -> false");
}

TEST(ConfigFile, AFieldHasAPlace) {
  const FieldDescriptorProto type;
  const std::string text = "# one\nname: 'x'\noptions {\n\tpacked: true  lazy: true\n}\n";
  EXPECT_EQ(config_place(text, "options.lazy", type), "4:16");
  EXPECT_EQ(config_place(text, "options.deprecated", type), "3:1");  // it would be within this
  EXPECT_EQ(config_place(text, "number", type), "");
  EXPECT_EQ(config_place(text, "no.field", type), "");
  EXPECT_EQ(config_place("{", "name", type), "");
}

}  // namespace
}  // namespace pscloud
