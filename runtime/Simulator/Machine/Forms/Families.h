// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The families of forms, one per file.
#pragma once

#include "runtime/Simulator/Machine/Decoding/Table.h"

namespace weft::simulator::machine {

std::span<const Form> integerForms();
std::span<const Form> logicForms();
std::span<const Form> floatForms();
std::span<const Form> halfForms();
std::span<const Form> mixedForms();
std::span<const Form> compareForms();
std::span<const Form> convertForms();
std::span<const Form> moveForms();
std::span<const Form> memoryForms();
std::span<const Form> stackForms();
std::span<const Form> atomicForms();
std::span<const Form> asyncForms();
std::span<const Form> matrixForms();
std::span<const Form> sparseForms();
std::span<const Form> wmmaForms();
std::span<const Form> mbarrierForms();
std::span<const Form> videoForms();
std::span<const Form> warpForms();
std::span<const Form> controlForms();
std::span<const Form> bulkForms();
std::span<const Form> clusterForms();
std::span<const Form> tensorMapForms();
std::span<const Form> warpgroupForms();
std::span<const Form> tensorMemoryForms();
std::span<const Form> tensorProductForms();

} // namespace weft::simulator::machine
