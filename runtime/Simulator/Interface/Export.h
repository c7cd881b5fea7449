// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What of this folder the extension module `_simulator` takes from libweft, which holds the simulator: a second copy of
// it would be a fifteenth of the wheel. It is between two files of one package, and no interface for others.
#pragma once

/// Seen outside of the library that holds it, where the library's list of exports (runtime/CAPI/weft.map) has it, too.
#define WEFT_SIMULATOR_API __attribute__((visibility("default")))
