// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The target descriptions for those who choose schedules outside of the compiler.
#include "compiler/CAPI/Internal.h"
#include "targets/Target.h"

char *weftc_targets(void) { return weft::capi::copyText(weft::targets::json()); }
