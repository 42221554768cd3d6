#include "engine/worker/view_request.h"

#include <algorithm>

#include "engine/key_range.h"
#include "engine/table/row_versions.h"

namespace pscloud {

namespace {
constexpr uint64_t kPieceBytes = uint64_t{8} << 20;  // less than a frame may have
}  // namespace

ViewRequest::ViewRequest(TableId table, std::shared_ptr<const TableSpec> spec, const std::vector<bool>& in_place,
                         const std::map<uint32_t, OwnerMemory>& known)
    : table_(table), spec_(std::move(spec)), owner_count_(static_cast<uint32_t>(in_place.size())) {
  for (uint32_t number = 0; number < owner_count_; ++number) {
    const auto [first, last] = dense_range(spec_->rows, number, owner_count_);
    if (first == last) continue;
    Owner owner{number, first, last - first, in_place[number], {}, {}};
    if (const auto found = known.find(number); found != known.end()) owner.memory = found->second;
    owners_->push_back(std::move(owner));
  }
}

Slice ViewRequest::ask(const Owner& owner, uint64_t first, uint64_t rows, uint64_t bytes, SharedBuffer* answer) const {
  Slice slice;
  slice.owner = owner.number;
  slice.part.type = FrameType::kPull;
  slice.part.table = table_;
  slice.part.spec = spec_;
  slice.part.range = true;
  slice.part.first = first;
  slice.part.count = static_cast<uint32_t>(rows);
  slice.part.in_place_bytes = bytes;
  slice.sink = [answer](const Part::Answer& got) { *answer = got.raw; };
  return slice;
}

std::vector<Slice> ViewRequest::slices() {
  std::vector<Slice> slices;
  const uint64_t row_bytes = spec_->width * sizeof(float);
  const uint64_t piece_rows = std::max<uint64_t>(1, kPieceBytes / row_bytes);
  for (Owner& owner : *owners_) {
    if (!owner.in_place) {
      owner.copy.resize(owner.rows * spec_->width);
      auto pulls = slice_rows(FrameType::kPull, table_, spec_, owner_count_, owner.first, owner.rows, {}, owner.copy);
      std::ranges::move(pulls, std::back_inserter(slices));
      continue;
    }
    if (owner.memory.rows.empty()) {
      owner.memory.rows.resize((owner.rows + piece_rows - 1) / piece_rows);
      for (size_t i = 0; i < owner.memory.rows.size(); ++i) {
        const uint64_t rows = std::min(piece_rows, owner.rows - i * piece_rows);
        slices.push_back(ask(owner, owner.first + i * piece_rows, rows, rows * row_bytes, &owner.memory.rows[i]));
      }
    }
    const uint64_t versions = version_count(owner.rows, spec_->width);
    slices.push_back(ask(owner, owner.first, 0, versions * sizeof(uint64_t), &owner.memory.versions));
  }
  return slices;
}

Result<TableView::Run> ViewRequest::run_of(const Owner& owner) const {
  if (!owner.in_place) return TableView::Run{owner.first, owner.copy};
  const auto wrong = [&] { return corrupt("an owner of table '{}' shows memory that makes no sense", spec_->name); };
  // One piece of memory behind the other, as it is in the table.
  const std::byte* const first = owner.memory.rows.front()->data();
  const std::byte* end = first;
  for (const SharedBuffer& piece : owner.memory.rows) {
    if (piece->data() != end) return wrong();
    end += piece->size();
  }
  const std::byte* versions = owner.memory.versions->data();
  if (reinterpret_cast<uintptr_t>(first) % alignof(float) != 0 ||
      reinterpret_cast<uintptr_t>(versions) % alignof(uint64_t) != 0) {
    return wrong();
  }
  return TableView::Run{
      owner.first,
      {reinterpret_cast<const float*>(first), owner.rows * spec_->width},
      {reinterpret_cast<const uint64_t*>(versions), owner.memory.versions->size() / sizeof(uint64_t)}};
}

Result<TableView> ViewRequest::view() const {
  std::vector<TableView::Run> runs;
  for (const Owner& owner : *owners_) runs.push_back(TRY(run_of(owner)));
  return TableView(spec_->width, std::move(runs), owners_);
}

std::map<uint32_t, OwnerMemory> ViewRequest::known() const {
  std::map<uint32_t, OwnerMemory> known;
  for (const Owner& owner : *owners_) {
    if (owner.in_place) known[owner.number] = owner.memory;
  }
  return known;
}

}  // namespace pscloud
