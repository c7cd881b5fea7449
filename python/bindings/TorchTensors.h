// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What torch's tensors are, by DLPack's table of functions, which torch has from 2.10 on: one call of C in the place of
// seven attributes.
#pragma once

#include "python/bindings/RuntimeArguments.h"

#include <optional>

namespace weft::python {

/// Element, shape, strides and place of a tensor of torch's own classes. Nothing for another array, for a torch without
/// that table, and for what no program takes, of which the attributes say more.
std::optional<Array> viewedTensor(pybind11::handle object);

} // namespace weft::python
