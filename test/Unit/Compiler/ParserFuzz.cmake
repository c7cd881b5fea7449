# Part of Weft. SPDX-License-Identifier: Apache-2.0
weft_add_unit_test(ParserFuzz SOURCES ParserFuzz.cpp LINK weft_mlir WeftTextGuard WeftTileIR WeftWarpIR)
set_target_properties(ParserFuzz PROPERTIES CXX_STANDARD ${WEFT_MLIR_CXX_STANDARD})
target_compile_definitions(ParserFuzz PRIVATE WEFT_TEST_DIR="${PROJECT_SOURCE_DIR}/test")
# (GoogleTest's headers use type information and MLIR's are compiled without; nothing here crosses between the two.)
target_compile_options(ParserFuzz PRIVATE -frtti)
