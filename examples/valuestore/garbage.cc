#include "garbage.h"

#include <optional>
#include <utility>
#include <vector>

namespace valuestore {

Swept sweep_garbage(const Storage& storage, WriterThread& writer, const KeySet& live,
                    std::uint64_t epoch) {
  constexpr std::size_t kPage = 128;
  Swept swept;
  if (epoch < 2) return swept;
  std::optional<ValueKey> after;
  do {
    std::vector<Change> changes;
    after = storage.visit_records(after, kPage, [&](const ValueKey& key, const Record& record) {
      if (live.count(key) != 0 || record.epoch > epoch - 2) {
        ++swept.kept;
        return;
      }
      Change change;
      change.kind = Change::Kind::kSweep;
      change.key = key;
      change.epoch = epoch - 2;
      changes.push_back(std::move(change));
    });
    for (const ChangeEnd end : writer.apply_all(std::move(changes))) {
      if (end == ChangeEnd::kDone) {
        ++swept.removed;
      } else if (end == ChangeEnd::kNothing) {
        ++swept.kept;  // put again since
      } else {
        swept.failed = true;
      }
    }
  } while (after && !swept.failed);
  return swept;
}

}  // namespace valuestore
