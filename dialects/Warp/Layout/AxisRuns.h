// Part of Weft. SPDX-License-Identifier: Apache-2.0
// How a thread's registers walk along an axis: in runs of neighbours at equal distances.
//
//   an accumulator's columns:  0 1, 8 9, 16 17, ..     runs of 2, 8 apart
#pragma once

#include "dialects/Warp/Layout/LinearLayout.h"
#include <optional>

namespace weft::warp {

struct AxisRuns {
  unsigned run = 0;      ///< log2 of a run's elements
  unsigned distance = 0; ///< log2 of the distance between their begins; `run` where there is one run
  unsigned count = 0;    ///< log2 of the elements of all runs

  /// Elements of all runs.
  int64_t size() const { return int64_t(1) << count; }
  /// The last element's distance from the first.
  int64_t last() const { return elementAt(size() - 1); }
  /// The distance of an element, by its number, from the first.
  int64_t elementAt(int64_t number) const {
    int64_t inRun = (int64_t(1) << run) - 1;
    return (number >> run << distance) | (number & inRun);
  }
  /// The number of an element by its distance from the first.
  int64_t numberOf(int64_t element) const {
    int64_t inRun = (int64_t(1) << run) - 1;
    return (element >> distance << run) | (element & inRun);
  }
};

/// The runs along an axis, each of whose elements a thread has at any place along the others. None where registers step
/// along several axes at once, at unequal distances, or where lanes or warps are in between so that they do not add up.
std::optional<AxisRuns> runsAlong(const LinearLayout &layout, unsigned axis);

/// A layout of what a tensor's rows along the axis have in common, of size 1 there: for each register of the tensor the
/// element of its row.
LinearLayout rowsAlong(const LinearLayout &layout, unsigned axis);

} // namespace weft::warp
