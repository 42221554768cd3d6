#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pscloud/error.h"

namespace pscloud {

// An element of the XML that S3 answers with: text or other elements, seldom both. Attributes are not kept.
struct XmlElement {
  std::string name;
  std::string text;  // all that stands directly within it, entities put in
  std::vector<XmlElement> children;

  // The first child of that name; null if there is none.
  const XmlElement* child(std::string_view child_name) const;
  // Its text; empty if there is none.
  std::string text_of(std::string_view child_name) const;
};

// Reads one document. Strict, and of XML only what is needed: a declaration, elements, attributes, text, the five
// entities of XML and those by number. No document types, comments or sections of character data: kCorrupt.
Result<XmlElement> parse_xml(std::string_view text);

}  // namespace pscloud
