#include "data/minibatch_reader.h"

#include <fmt/format.h>

#include <utility>

#include "base/log.h"

namespace pscloud {

MinibatchReader::MinibatchReader(FileStore& store, ExampleFormat format, bool ignore_groups, size_t rows,
                                 const CachePlace& cache, Labels labels, size_t features_max)
    : rows_(rows),
      features_max_(features_max),
      counting_(store,
                [this](size_t bytes) {
                  stored_bytes_ += bytes;
                  return Result<>();
                }),
      text_(counting_, make_parser(format, ignore_groups, labels)) {
  if (cache.store == nullptr) return;
  const char* const groups = ignore_groups ? "without groups" : "with groups";
  cache_.emplace(store, *cache.store, cache.prefix,
                 fmt::format("{} rules {} {} {} rows", static_cast<int>(format), parser_version(format), groups, rows));
}

Result<> MinibatchReader::open(const FilePart& part, bool keep) {
  part_ = part;
  keep_ = keep;
  given_ = 0;
  bytes_before_ = stored_bytes_;
  summary_ = {};
  cached_.reset();
  writing_.reset();
  if (cache_) cached_ = TRY(cache_->open(part));
  if (cached_) return {};
  begin_to_keep();
  return text_.open(part);
}

void MinibatchReader::begin_to_keep() {
  if (!cache_ || !keep_) return;
  auto writer = cache_->create(part_);
  if (writer) {
    writing_ = *std::move(writer);
  } else {
    keep_none(writer.error());
  }
}

// What cannot be kept is read again.
void MinibatchReader::keep_none(const Error& why) {
  writing_.reset();
  if (std::exchange(complained_, true)) return;
  log_warning("{}; what is not kept is read from its file again", why.message);
}

Result<bool> MinibatchReader::next(NumberedRows& out) { return cached_ ? next_cached(out) : next_of_text(out); }

Result<bool> MinibatchReader::next_cached(NumberedRows& out) {
  const auto more = cached_->next(out);
  if (more) {
    given_ += *more ? out.size() : 0;
    if (!*more) {
      summary_ = cached_->summary();
      stored_bytes_ += summary_.stored_bytes;
    }
    return *more;
  }
  if (more.error().code != Code::kCorrupt) return more.error();
  TRY(continue_in_text(more.error()));
  return next_of_text(out);
}

// What came before was right: it is read once more only for the cache, or passed over.
Result<> MinibatchReader::continue_in_text(const Error& damage) {
  cached_.reset();
  begin_to_keep();
  log_warning("{}; the rest of {} is read from its file{}", damage.message, part_.uri,
              writing_ ? ", and the cache made anew" : "");
  TRY(text_.open(part_));
  NumberedRows again;
  for (uint64_t left = given_; left > 0;) {
    const RowSlice rows = TRY(text_.next(std::min<uint64_t>(left, rows_)));
    if (rows.rows() == 0) break;
    left -= rows.rows();
    if (writing_) TRY(number(rows, again));
  }
  return {};
}

// For the next time, too.
Result<> MinibatchReader::number(const RowSlice& rows, NumberedRows& out) {
  if (rows.keys.size() > features_max_) {
    return invalid("{}: {} examples together have {} features, more than {}: take smaller minibatches", part_.uri,
                   rows.rows(), rows.keys.size(), features_max_);
  }
  localizer_.localize(rows.keys);
  out.assign(rows, localizer_.keys(), localizer_.columns());
  if (!writing_) return {};
  if (const auto kept = writing_->write(out); !kept) keep_none(kept.error());
  return {};
}

Result<bool> MinibatchReader::next_of_text(NumberedRows& out) {
  const RowSlice rows = TRY(text_.next(rows_));
  summary_.bad = text_.bad_lines();
  if (rows.rows() == 0) {
    summary_.stored_bytes = stored_bytes_ - bytes_before_;
    if (writing_) {
      if (const auto kept = writing_->commit(summary_); !kept) keep_none(kept.error());
      writing_.reset();
    }
    return false;
  }
  TRY(number(rows, out));
  given_ += rows.rows();
  return true;
}

}  // namespace pscloud
