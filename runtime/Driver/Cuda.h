// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The CUDA driver as a `Device`. libcuda.so.1 is loaded on first use; where it is absent every call says so.
#pragma once

#include "runtime/Driver/Driver.h"

namespace weft::driver {

/// How many CUDA devices there are. NotFound where there is no driver, with the loader's reason.
Result<int> cudaDeviceCount();

/// Opens one device and retains its primary context, the one PyTorch and the CUDA runtime use too. NotFound for an
/// ordinal that does not exist.
Result<std::shared_ptr<Device>> openCuda(int ordinal);

} // namespace weft::driver
