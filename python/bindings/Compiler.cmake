# Part of Weft. SPDX-License-Identifier: Apache-2.0
if(TARGET weft-compiler)
  weft_add_python_module(_compiler SOURCES bindings/Compiler.cpp bindings/CompilerCompile.cpp LINK weft-compiler)
  if(NOT EXISTS "${PROJECT_SOURCE_DIR}/compiler/CAPI/Compile.cpp")
    target_compile_definitions(_compiler PRIVATE WEFT_NO_COMPILE)
  endif()
endif()
