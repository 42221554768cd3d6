#include "launch/metrics_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace pscloud {
namespace {

constexpr std::string_view kMark = "**metrics_data: ";
constexpr size_t kColumnsMax = 256;

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

bool is_figure(std::string_view text, double& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

// Each "name=number" of a line that is marked.
template <class Use>
void each_figure(std::string_view line, Use use) {
  if (!line.starts_with(kMark)) return;
  line.remove_prefix(kMark.size());
  while (!line.empty()) {
    const std::string_view item = line.substr(0, line.find(','));
    line.remove_prefix(std::min(item.size() + 1, line.size()));
    const size_t equals = item.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = trimmed(item.substr(0, equals));
    const std::string_view value = trimmed(item.substr(equals + 1));
    double number = 0;
    // A name with a quote would need CSV's quoting in every reader; nobody has one.
    if (name.empty() || name.find('"') != std::string_view::npos || !is_figure(value, number)) continue;
    use(name, value, number);
  }
}

}  // namespace

Figures figures_of_line(std::string_view line) {
  Figures figures;
  each_figure(line, [&](std::string_view name, std::string_view, double number) {
    if (is_figure_name(name)) figures.emplace_back(name, number);
  });
  return figures;
}

Result<> MetricsCsv::take(std::string_view task, std::string_view line) {
  std::vector<std::string_view> values(columns_.size());
  bool any = false;
  each_figure(line, [&](std::string_view name, std::string_view value, double) {
    auto column = static_cast<size_t>(std::ranges::find(columns_, name) - columns_.begin());
    if (column == columns_.size()) {
      if (column == kColumnsMax) return;
      columns_.emplace_back(name);
      values.emplace_back();
      header_is_new_ = true;
    }
    values[column] = value;
    any = true;
  });
  if (!any) return {};
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  rows_ += fmt::format("{:.3f},{},{}\n", std::chrono::duration<double>(now).count(), task, fmt::join(values, ","));
  return {};
}

Result<> MetricsCsv::flush() {
  if (rows_.empty()) return {};
  if (header_is_new_) {
    std::string rest;
    if (std::ifstream old(path_); old) {
      std::string header;
      std::getline(old, header);
      std::ostringstream text;
      text << old.rdbuf();
      rest = text.str();
    }
    const std::string fresh = path_ + ".new";
    std::ofstream file(fresh, std::ios::trunc);
    file << "time,task," << fmt::format("{}", fmt::join(columns_, ",")) << "\n" << rest;
    file.close();
    std::error_code error;
    if (file) std::filesystem::rename(fresh, path_, error);
    if (!file || error) return unavailable("{}: cannot write it", path_);
    header_is_new_ = false;
  }
  std::ofstream file(path_, std::ios::app);
  file << rows_;
  file.close();
  if (!file) return unavailable("{}: cannot write it", path_);
  rows_.clear();
  return {};
}

}  // namespace pscloud
