# Part of Weft. SPDX-License-Identifier: Apache-2.0
weft_add_unit_test(ScalarDerivativeTests SOURCES ScalarDerivativeTest.cpp LINK weft_mlir WeftDifferentiate)
set_target_properties(ScalarDerivativeTests PROPERTIES CXX_STANDARD 17)
target_compile_options(ScalarDerivativeTests PRIVATE -frtti)
