// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "dialects/Attn/Pattern/Scattered.h"
#include "dialects/Attn/IR/AttnOps.h"

using namespace mlir;

namespace weft::attn {

/// What a pattern's scattered masks leave of it if all of them hold, or none.
static Attribute ifScattered(Attribute pattern, bool hold) {
  AttrTypeReplacer replacer;
  replacer.addReplacement([&](NotAttr part) -> std::pair<Attribute, WalkResult> {
    return {NotAttr::get(part.getContext(), ifScattered(part.getPattern(), !hold)), WalkResult::skip()};
  });
  replacer.addReplacement([&](MaskAttr mask) -> Attribute {
    if (!mask.getScattered())
      return mask;
    return hold ? Attribute(FullAttr::get(mask.getContext())) : EmptyAttr::get(mask.getContext());
  });
  return replacer.replace(pattern);
}

Attribute withoutScattered(Attribute pattern) { return ifScattered(pattern, /*hold=*/true); }

} // namespace weft::attn
