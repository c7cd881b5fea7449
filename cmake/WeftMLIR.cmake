# Part of Weft. SPDX-License-Identifier: Apache-2.0
# MLIR 22, its tablegen functions, and the one precompiled header that every file of the compiler shares.

# (MLIR's version file accepts only an exact match, so the major version is compared here.)
find_package(MLIR REQUIRED CONFIG HINTS /usr/lib/llvm-22/lib/cmake/mlir)
find_package(LLVM REQUIRED CONFIG HINTS /usr/lib/llvm-22/lib/cmake/llvm)
if(NOT LLVM_VERSION_MAJOR EQUAL 22)
  message(FATAL_ERROR "expected LLVM and MLIR 22, but found ${LLVM_PACKAGE_VERSION}; install llvm-22-dev and libmlir-22-dev")
endif()
list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
include(TableGen)
include(AddLLVM)
include(AddMLIR)

# LLVM's own standard: its headers do not compile as C++20 with clang 22 over libstdc++ 12.
set(WEFT_MLIR_CXX_STANDARD 17)

# What every file of the dialects and the compiler is compiled with.
add_library(weft_mlir INTERFACE)
# The binary tree holds what tablegen writes.
target_include_directories(weft_mlir SYSTEM INTERFACE ${PROJECT_BINARY_DIR} ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
target_compile_options(weft_mlir INTERFACE -fno-rtti -fno-exceptions)
target_link_libraries(weft_mlir INTERFACE weft_options)
if(NOT WEFT_STATIC_MLIR) # else libweft-compiler alone links the archives
  target_link_libraries(weft_mlir INTERFACE MLIR LLVM)
endif()

# MLIR's headers cost 10 seconds a file and those of the dialects 3; compiled once, with their templates instantiated, a
# file costs 0.2 to 2.
add_library(WeftPCH OBJECT "${PROJECT_SOURCE_DIR}/cmake/Precompiled.cpp")
target_link_libraries(WeftPCH PRIVATE weft_mlir)
set_target_properties(WeftPCH PROPERTIES CXX_STANDARD ${WEFT_MLIR_CXX_STANDARD})
target_precompile_headers(WeftPCH PRIVATE "${PROJECT_SOURCE_DIR}/cmake/Precompiled.h")
add_dependencies(WeftPCH AttnIncGen TileIncGen TileProgramIncGen WarpIncGen)

# weft_use_mlir(NAME): a target is compiled as the compiler is, with its precompiled header.
function(weft_use_mlir name)
  target_link_libraries(${name} PRIVATE weft_mlir)
  set_target_properties(${name} PROPERTIES CXX_STANDARD ${WEFT_MLIR_CXX_STANDARD})
  weft_reuse_headers(${name} WeftPCH)
endfunction()

# weft_add_mlir_library(NAME SOURCES ... [LINK ...] [DEPENDS ...]): a room of the compiler.
# DEPENDS names the tablegen targets whose output the sources include.
function(weft_add_mlir_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
  weft_use_mlir(${name})
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
endfunction()

# weft_add_mlir_executable(NAME SOURCES ... [LINK ...])
function(weft_add_mlir_executable name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINK})
  weft_use_mlir(${name})
endfunction()

# weft_add_mlir_unit_test(NAME SOURCES ... LINK ...): one GoogleTest binary of the compiler.
function(weft_add_mlir_unit_test name)
  weft_add_unit_test(${name} ${ARGN} weft_mlir)
  weft_use_mlir(${name})
endfunction()

# weft_tablegen(TARGET TD ... OUTPUTS "file.inc" "-flags" ...): generated code beside the .td in the binary tree.
function(weft_tablegen target td)
  set(LLVM_TARGET_DEFINITIONS ${td})
  set(pairs ${ARGN})
  while(pairs)
    list(POP_FRONT pairs output flags)
    separate_arguments(flags)
    mlir_tablegen(${output} ${flags} -I ${PROJECT_SOURCE_DIR} -I ${MLIR_INCLUDE_DIRS})
  endwhile()
  add_public_tablegen_target(${target})
endfunction()

# weft_reference_page(PAGE TD FLAGS...): docs/reference/PAGE.md from definitions, behind PAGE.head.md where there is one. Every build
# generates the page, `weft-docs` copies it into the source tree, and a test says when the copy there is out of date.
add_custom_target(weft-docs COMMENT "Writing docs/reference")
function(weft_reference_page page td)
  set(LLVM_TARGET_DEFINITIONS ${td})
  set(generated "${CMAKE_CURRENT_BINARY_DIR}/${page}.md")
  set(head "${CMAKE_CURRENT_SOURCE_DIR}/${page}.head.md")
  if(EXISTS "${head}")
    set(body "${page}.body.md")
    add_custom_command(OUTPUT "${generated}" DEPENDS "${head}" "${CMAKE_CURRENT_BINARY_DIR}/${body}"
      COMMAND ${CMAKE_COMMAND} -E cat "${head}" "${CMAKE_CURRENT_BINARY_DIR}/${body}" > "${generated}")
  else()
    set(body "${page}.md")
  endif()
  mlir_tablegen(${body} ${ARGN} -I ${PROJECT_SOURCE_DIR} -I ${MLIR_INCLUDE_DIRS})
  set(committed "${PROJECT_SOURCE_DIR}/docs/reference/${page}.md")
  add_custom_target(${page}Page ALL DEPENDS ${generated})
  add_custom_target(${page}PageCopy COMMAND ${CMAKE_COMMAND} -E copy_if_different ${generated} ${committed})
  add_dependencies(${page}PageCopy ${page}Page)
  add_dependencies(weft-docs ${page}PageCopy)
  if(WEFT_BUILD_TESTS)
    add_test(NAME ReferenceOf${page} COMMAND ${CMAKE_COMMAND} -E compare_files ${committed} ${generated})
  endif()
endfunction()
