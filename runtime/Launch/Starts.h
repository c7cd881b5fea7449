// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The numbers of inputs that say where packed sequences start.
#pragma once

#include "runtime/Launch/Tensors.h"

namespace weft::launch {

/// Refuses starts of packed sequences that do not rise from 0 to their number of tokens, in the order of `stream`; the
/// inputs' sizes and memory are those of the program, `symbols` their values. Looks at those in host memory, which are
/// the simulator's: a GPU's would have to be waited for, and its kernels keep whatever they meet inside of the tokens.
Status checkStarts(const library::Program &program, std::span<const Tensor> inputs, std::span<const int64_t> symbols,
                   driver::Device &device, driver::StreamHandle stream);

} // namespace weft::launch
