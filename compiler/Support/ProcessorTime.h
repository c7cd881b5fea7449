// Part of Weft. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ctime>

namespace weft {

/// Milliseconds of processor time that this thread has taken: what a stage costs, whatever else the machine does.
inline double processorMs() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return 1e3 * static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_nsec);
}

} // namespace weft
