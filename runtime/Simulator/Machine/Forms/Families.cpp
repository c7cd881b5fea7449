// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Machine/Forms/Families.h"

#include <array>

namespace weft::simulator::machine {

std::span<const std::span<const Form>> allForms() {
  static const std::array families{
      integerForms(),  logicForms(),     floatForms(),     halfForms(),         mixedForms(),
      compareForms(),  convertForms(),   moveForms(),      memoryForms(),       stackForms(),
      atomicForms(),   asyncForms(),     matrixForms(),    sparseForms(),       wmmaForms(),
      mbarrierForms(), videoForms(),     warpForms(),      controlForms(),      bulkForms(),
      clusterForms(),  warpgroupForms(), tensorMapForms(), tensorMemoryForms(), tensorProductForms()};
  return families;
}

} // namespace weft::simulator::machine
