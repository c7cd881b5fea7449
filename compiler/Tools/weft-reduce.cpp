// Part of Weft. SPDX-License-Identifier: Apache-2.0
// weft-reduce: a module made smaller for as long as a test finds it interesting.
#include "compiler/Tools/Tools.h"

int main(int argc, char **argv) { return weft::reduceMain(argc, argv); }
