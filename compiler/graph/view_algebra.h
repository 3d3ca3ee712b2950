// Normal forms and composition of views.
#pragma once

#include <optional>
#include <vector>

#include "compiler/graph/affine.h"
#include "compiler/graph/graph.h"

namespace ingot {

// Brings a view of `from` with shape `to` to its normal form: no terms on axes of extent 1, no
// divisor that always divides, no fill that is never read. Equal views then have equal text.
void normalize_view(ViewOp& view, const Shape& from, const Shape& to);

// Whether some index leaves `from`, or its division is not exact, at some place of `to`.
[[nodiscard]] bool may_leave(const AffineIndex& index, std::int64_t extent, const Shape& to);

// Whether a view in normal form gives its input back.
[[nodiscard]] bool is_identity(const ViewOp& view, const Shape& from, const Shape& to);

// One view that equals `inner` (of `from`, with shape `middle`) followed by `outer` (with shape
// `to`), if there is one. Both are in normal form.
//
// out[a] = mid[I(a)] and mid[m] = in[J(m)] give in[J(I(a))]. What needs care is a place that
// leaves mid: it gives outer's fill, so J must leave `in` there, and both fills must agree.
[[nodiscard]] std::optional<ViewOp> compose_views(const ViewOp& inner, const Shape& from,
                                                  const Shape& middle, const ViewOp& outer,
                                                  const Shape& to);

}  // namespace ingot
