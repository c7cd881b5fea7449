# Part of Weft. SPDX-License-Identifier: Apache-2.0
if(TARGET weft)
  weft_add_python_module(_runtime SOURCES bindings/Runtime.cpp bindings/RuntimeArguments.cpp bindings/RuntimePrograms.cpp LINK weft)
endif()
