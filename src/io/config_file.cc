#include "io/config_file.h"

#include <fmt/core.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <memory>
#include <optional>
#include <vector>

#include "base/suggest.h"
#include "base/text.h"
#include "io/decompress.h"

namespace pscloud {
namespace {

namespace pb = google::protobuf;

constexpr uint64_t kConfigBytesMax = 16 << 20;
constexpr size_t kWordMax = 100;  // what is longer is no name

std::string meant(std::string_view word, const std::vector<std::string>& known) {
  const std::string found = suggest(word.substr(0, kWordMax), known);
  return found.empty() ? "" : fmt::format("; did you mean {}?", found);
}

// What stands in the `number`-th pair of quotes of a sentence.
std::string_view quoted(std::string_view sentence, int number) {
  for (int quotes = 2 * number + 1; quotes > 0; --quotes) {
    const size_t at = sentence.find('"');
    if (at == std::string_view::npos) return {};
    sentence.remove_prefix(at + 1);
  }
  return sentence.substr(0, sentence.find('"'));
}

std::vector<const pb::FieldDescriptor*> extensions_of(const pb::Descriptor* type) {
  std::vector<const pb::FieldDescriptor*> found;
  type->file()->pool()->FindAllExtensions(type, &found);
  return found;
}

// What a text has to say for it.
std::string written_name(const pb::FieldDescriptor* field) {
  return field->is_extension() ? fmt::format("[{}]", field->full_name()) : field->name();
}

// Null if there is none. An extension's name may be written as in a text, or be its last word alone.
const pb::FieldDescriptor* field_named(const pb::Descriptor* type, const std::string& name) {
  if (const auto* field = type->FindFieldByName(name)) return field;
  for (const auto* extension : extensions_of(type)) {
    if (name == extension->name() || name == written_name(extension)) return extension;
  }
  return nullptr;
}

// Takes the "[1]" off "push_filter[1]"; 0 if there is none.
int take_index(std::string& name) {
  const size_t bracket = name.starts_with('[') ? std::string::npos : name.find('[');
  if (bracket == std::string::npos) return 0;
  int index = 0;
  std::from_chars(name.data() + bracket + 1, name.data() + name.size(), index);
  name.resize(bracket);
  return index;
}

// Takes the first name off "async_sgd.minibatch": the dots of one in brackets are its own.
std::string take_name(std::string_view& path) {
  const size_t end = path.find('.', path.starts_with('[') ? std::min(path.find(']'), path.size()) : 0);
  std::string name(path.substr(0, end));
  path.remove_prefix(end == std::string_view::npos ? path.size() : end + 1);
  return name;
}

// The byte at a place as protobuf counts: lines and columns from 0, and a tab goes to the next multiple of eight.
size_t offset_of(std::string_view text, int line, int column) {
  size_t at = 0;
  for (; line > 0 && at < text.size(); --line) at = std::min(text.size(), text.find('\n', at)) + 1;
  for (int here = 0; here < column && at < text.size(); ++at) here = text[at] == '\t' ? (here / 8 + 1) * 8 : here + 1;
  return std::min(at, text.size());
}

// "line:column" of a byte, as editors count.
std::string place_of(std::string_view text, size_t at) {
  const size_t line_begin = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;
  const auto lines = std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(at), '\n');
  return fmt::format("{}:{}", lines + 1, at - line_begin + 1);
}

// What a byte of the text is within.
struct Block {
  const pb::Descriptor* message = nullptr;  // null if names before it make no sense
  size_t begin = 0;                         // of its '{'
  bool is_whole_text = false;
};
Block block_at(std::string_view text, size_t offset, const pb::Descriptor* root) {
  std::vector<Block> within{{root, 0, true}};
  std::string_view word;
  for (size_t at = 0; at < offset; ++at) {
    const char c = text[at];
    if (c == '#') {
      at = std::min(text.find('\n', at), offset);
    } else if (c == '"' || c == '\'') {
      for (++at; at < offset && text[at] != c; ++at) at += text[at] == '\\' ? 1 : 0;
    } else if (std::isalnum(static_cast<unsigned char>(c)) || c == '_') {
      const size_t begin = at;
      while (at + 1 < offset && (std::isalnum(static_cast<unsigned char>(text[at + 1])) || text[at + 1] == '_')) ++at;
      word = text.substr(begin, at + 1 - begin);
    } else if (c == '{' || c == '<') {
      const auto* around = within.back().message;
      const auto* field = around == nullptr ? nullptr : around->FindFieldByName(std::string(word));
      within.push_back({field == nullptr ? nullptr : field->message_type(), at, false});
    } else if ((c == '}' || c == '>') && within.size() > 1) {
      within.pop_back();
    }
  }
  return within.back();
}

// Takes a sentence that begins so and ends so apart: what is between.
std::optional<std::string_view> between(std::string_view sentence, std::string_view begin, std::string_view end) {
  if (sentence.size() < begin.size() + end.size() || !sentence.starts_with(begin) || !sentence.ends_with(end)) {
    return std::nullopt;
  }
  return sentence.substr(begin.size(), sentence.size() - begin.size() - end.size());
}

// What protobuf has expected, in our words.
std::string_view wanted_here(std::string_view kind) {
  if (kind == "identifier") return "the name of a field";
  if (kind == "integer") return "a whole number";
  if (kind == "double") return "a number";
  if (kind == "string") return "a text in quotes";
  if (kind == "integer or identifier") return "one of the field's values";
  return kind;  // in quotes, as it is written
}

// Keeps the first complaint, for what follows is often only its consequence; in our words where a name can be put
// right, and with the place of the name: protobuf gives that of what follows it.
class FirstError final : public pb::io::ErrorCollector {
 public:
  FirstError(const pb::Message& config, std::string_view text, std::string_view name)
      : config_(config), type_(config.GetDescriptor()), text_(text), name_(name) {}

  void AddError(int line, pb::io::ColumnNumber column, const std::string& message) override {
    if (!complaint_.empty()) return;
    if (line < 0) {
      constexpr std::string_view kMissing = "Message missing required fields: ";
      if (!message.starts_with(kMissing)) {
        complaint_ = fmt::format("{}: {}", name_, message);
        return;
      }
      const std::string fields = message.substr(kMissing.size());
      const std::string place = config_place(text_, fields.substr(0, fields.find(',')), config_);  // of what lacks it
      complaint_ = fmt::format("{}{}{}: missing: {}", name_, place.empty() ? "" : ":", place, fields);
      return;
    }
    size_t at = offset_of(text_, line, column);
    const std::string what = explain(message, at);
    const std::string place = name_.empty() ? "" : fmt::format("{}:{}: ", name_, place_of(text_, at));
    complaint_ = place + escape_controls(what);
  }
  const std::string& complaint() const { return complaint_; }

 private:
  // Moves `at` to the beginning of the word that the sentence is about, if it is about one.
  std::string explain(std::string_view sentence, size_t& at) const {
    if (sentence.starts_with("Message type \"")) {
      const std::string_view word = quoted(sentence, 1);
      move_to(word, at);
      const auto* type = type_->file()->pool()->FindMessageTypeByName(std::string(quoted(sentence, 0)));
      std::vector<std::string> known;
      for (int i = 0; type != nullptr && i < type->field_count(); ++i) known.push_back(type->field(i)->name());
      const auto* exact = type == nullptr ? nullptr : field_named(type, std::string(word));
      const std::string wanted = exact ? fmt::format("; it is written {}", written_name(exact)) : meant(word, known);
      return fmt::format("there is no field {} here{}", word.substr(0, kWordMax), wanted);
    }
    if (sentence.starts_with("Unknown enumeration value of \"")) {
      const std::string_view word = quoted(sentence, 0);
      const std::string_view field_name = quoted(sentence, 1);
      move_to(word, at);
      const auto* type = block_at(text_, at, type_).message;
      const auto* field = type == nullptr ? nullptr : type->FindFieldByName(std::string(field_name));
      std::vector<std::string> known;
      if (field != nullptr && field->enum_type() != nullptr) {
        for (int i = 0; i < field->enum_type()->value_count(); ++i)
          known.push_back(field->enum_type()->value(i)->name());
      }
      return fmt::format("{} is no value of {} here{}", word.substr(0, kWordMax), field_name, meant(word, known));
    }
    if (sentence.starts_with("Invalid value for boolean field \"")) {
      move_to(quoted(sentence, 1), at);
      return fmt::format("{} is no value of {} here: true or false", quoted(sentence, 1), quoted(sentence, 0));
    }
    if (const auto name = between(sentence, "Non-repeated field \"", "\" is specified multiple times.")) {
      move_to(*name, at);
      return fmt::format("{} stands here a second time", *name);
    }
    if (const auto number = between(sentence, "Integer out of range (", ")")) {
      return fmt::format("{} is out of this field's range", *number);
    }
    if (sentence == "Unexpected end of string." || sentence == "String literals cannot cross line boundaries.") {
      return "a text in quotes does not end in its line";
    }
    if (const auto pair = between(sentence, "Expected ", "")) return explain_unexpected(*pair, at);
    return std::string(sentence);
  }
  // Of `integer, got: x` or `"{", found "x".`.
  std::string explain_unexpected(std::string_view pair, size_t at) const {
    constexpr std::string_view kGot = ", got: ";
    constexpr std::string_view kFound = ", found \"";
    const bool symbol = pair.starts_with('"');
    const size_t comma = pair.rfind(symbol ? kFound : kGot);
    if (comma == std::string_view::npos) return fmt::format("expected {}", pair);
    const std::string_view wanted = pair.substr(0, comma);
    std::string_view found = pair.substr(comma + (symbol ? kFound : kGot).size());
    if (symbol) found = found.substr(0, found.size() - std::min<size_t>(2, found.size()));  // without its ".
    if (!found.empty()) {
      if (wanted == "identifier" && found == "}") return "this } closes nothing";
      return fmt::format("{} should stand here, not {}", wanted_here(wanted), found.substr(0, kWordMax));
    }
    const Block block = block_at(text_, at, type_);
    if (block.is_whole_text) return fmt::format("the text ends where {} is missing", wanted_here(wanted));
    return fmt::format("the text ends here, and the block that begins at {} has no }}", place_of(text_, block.begin));
  }
  void move_to(std::string_view word, size_t& at) const {
    if (word.empty() || at == 0) return;
    const size_t found = text_.rfind(word, at - 1);
    if (found != std::string_view::npos) at = found;
  }

  const pb::Message& config_;  // of its kind
  const pb::Descriptor* type_;
  std::string_view text_;
  std::string name_;
  std::string complaint_;
};

}  // namespace

Result<> parse_config(std::string_view text, std::string_view name, pb::Message& config) {
  FirstError error(config, text, name);
  pb::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  if (!parser.ParseFromString(std::string(text), &config)) return invalid("{}", error.complaint());
  return {};
}

std::string config_place(std::string_view text, std::string_view field, const pb::Message& config) {
  const std::unique_ptr<pb::Message> parsed(config.New());
  pb::TextFormat::ParseInfoTree root;
  pb::TextFormat::Parser parser;
  FirstError ignored(config, text, "");
  parser.RecordErrorsTo(&ignored);
  parser.WriteLocationsTo(&root);
  parser.AllowPartialMessage(true);
  if (!parser.ParseFromString(std::string(text), parsed.get())) return {};
  std::string place;
  const pb::TextFormat::ParseInfoTree* tree = &root;
  const pb::Descriptor* type = config.GetDescriptor();
  while (tree != nullptr && type != nullptr && !field.empty()) {
    std::string name = take_name(field);
    const int number = take_index(name);
    const pb::FieldDescriptor* one = field_named(type, name);
    if (one == nullptr) break;
    const int index = one->is_repeated() ? number : -1;
    const auto location = tree->GetLocation(one, index);
    if (location.line < 0) break;
    place = place_of(text, offset_of(text, location.line, location.column));
    type = one->message_type();
    tree = type == nullptr ? nullptr : tree->GetTreeForNested(one, index);
  }
  return place;
}

Result<> set_config_field(std::string_view assignment, pb::Message& config) {
  const size_t equals = assignment.find('=');
  const std::string_view path = assignment.substr(0, equals);
  if (equals == std::string_view::npos || path.ends_with('.')) return invalid("'{}' must be FIELD=VALUE", assignment);
  std::string value(assignment.substr(equals + 1));
  pb::Message* within = &config;
  for (std::string_view left = path;;) {
    const std::string name = take_name(left);
    const pb::FieldDescriptor* field = field_named(within->GetDescriptor(), name);
    if (field == nullptr) {
      std::vector<std::string> known;
      for (int i = 0; i < within->GetDescriptor()->field_count(); ++i)
        known.push_back(within->GetDescriptor()->field(i)->name());
      for (const auto* extension : extensions_of(within->GetDescriptor())) known.push_back(extension->name());
      return invalid("{}: there is no field {}{}", path, name, meant(name, known));
    }
    const bool message = field->message_type() != nullptr;
    if (left.empty()) {
      if (message) return invalid("{} has fields of its own: name one of them", path);
      if (field->type() == pb::FieldDescriptor::TYPE_STRING && !value.starts_with('"')) {
        value = fmt::format("\"{}\"", pb::CEscape(value));
      }
      const pb::Reflection& fields = *within->GetReflection();
      fields.ClearField(within, field);
      const std::string text = fmt::format("{}: {}", written_name(field), value);
      FirstError error(*within, text, "");  // nobody has written this text: it has no places to tell
      pb::TextFormat::Parser parser;
      parser.RecordErrorsTo(&error);
      parser.AllowPartialMessage(true);
      if (!parser.MergeFromString(text, within)) return invalid("{}: {}", path, error.complaint());
      return {};
    }
    if (!message || field->is_repeated()) return invalid("{}: {} has no fields that can be set", path, name);
    within = within->GetReflection()->MutableMessage(within, field);
  }
}

std::string config_text(const pb::Message& config) {
  std::string text;
  pb::TextFormat::PrintToString(config, &text);
  return text;
}

std::string config_differences(const pb::Message& before, const pb::Message& now) {
  pb::util::MessageDifferencer differencer;
  std::string lines;
  differencer.set_message_field_comparison(pb::util::MessageDifferencer::EQUIVALENT);
  differencer.ReportDifferencesToString(&lines);
  if (differencer.Compare(before, now)) return {};
  while (lines.ends_with('\n')) lines.pop_back();
  for (size_t at = lines.find('\n'); at != std::string::npos; at = lines.find('\n', at)) lines.replace(at, 1, ", ");
  return lines;
}

Result<> append_config(std::string_view text, std::string_view name, pb::Message& config) {
  const std::unique_ptr<pb::Message> more(config.New());
  TRY(parse_config(text, name, *more));
  std::vector<const pb::FieldDescriptor*> fields;
  more->GetReflection()->ListFields(*more, &fields);
  for (const pb::FieldDescriptor* field : fields) {
    if (field->is_repeated() || !config.GetReflection()->HasField(config, field)) continue;
    return invalid("{}: the config has {} already; to change a field of it: --set {}...=VALUE", name, field->name(),
                   field->name());
  }
  config.MergeFrom(*more);
  return {};
}

Result<std::string> read_config_text(FileStore& store, const std::string& uri) {
  const auto input = TRY(open_decompressed(store, uri));
  return TRY(read_all(*input, kConfigBytesMax).at(uri));
}

Result<> read_config(FileStore& store, const std::string& uri, pb::Message& config) {
  return parse_config(TRY(read_config_text(store, uri)), uri, config);
}

}  // namespace pscloud
