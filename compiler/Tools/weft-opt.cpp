// Part of Weft. SPDX-License-Identifier: Apache-2.0
// weft-opt: reads MLIR, runs the passes named on the command line, prints MLIR.
#include "compiler/Tools/Tools.h"

int main(int argc, char **argv) { return weft::optMain(argc, argv); }
