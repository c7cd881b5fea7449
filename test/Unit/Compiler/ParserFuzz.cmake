# Part of Weft. SPDX-License-Identifier: Apache-2.0
weft_add_mlir_unit_test(ParserFuzz SOURCES ParserFuzz.cpp LINK WeftTextGuard WeftTileIR WeftWarpIR)
target_compile_definitions(ParserFuzz PRIVATE WEFT_TEST_DIR="${PROJECT_SOURCE_DIR}/test")
