# Part of Weft. SPDX-License-Identifier: Apache-2.0
weft_add_mlir_unit_test(ScalarDerivativeTests SOURCES ScalarDerivativeTest.cpp LINK WeftDifferentiate)
