// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See ProgramKernels.h.
#include "compiler/Conversion/AttnToTile/Kernel/ProgramKernels.h"

#include "compiler/Conversion/AttnToTile/Kernel/KernelOpInterface.cpp.inc"
