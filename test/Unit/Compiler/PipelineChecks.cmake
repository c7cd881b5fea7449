# Part of Weft. SPDX-License-Identifier: Apache-2.0
weft_add_unit_test(PipelineChecksTests SOURCES PipelineChecksTest.cpp LINK weft_mlir WeftPipelines)
set_target_properties(PipelineChecksTests PROPERTIES CXX_STANDARD 17)
