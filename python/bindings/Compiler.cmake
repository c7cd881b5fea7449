# Part of Weft. SPDX-License-Identifier: Apache-2.0
if(TARGET weft-compiler)
  weft_add_python_module(_compiler SOURCES bindings/Compiler.cpp bindings/CompilerCompile.cpp bindings/CompilerPatterns.cpp LINK weft-compiler)
endif()
