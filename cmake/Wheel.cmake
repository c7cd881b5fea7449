# Part of Weft. SPDX-License-Identifier: Apache-2.0
# Where things lie in a wheel: all inside of the package `weft`, so that `find_package(Weft)` with
# CMAKE_PREFIX_PATH at the folder that holds `weft` finds the runtime's headers and library. Wheels know no links, so
# that the library goes by its soname alone.
set(CMAKE_INSTALL_LIBDIR weft/_native)
set(CMAKE_INSTALL_INCLUDEDIR weft/include)
set(WEFT_CMAKE_DIR weft/cmake)
set(WEFT_PKGCONFIG_DIR weft/pkgconfig)
set(WEFT_PYTHON_DIR weft/_native)
if(NOT SKBUILD_STATE STREQUAL "editable")
  set(WEFT_NATIVE_DIR "${PROJECT_BINARY_DIR}/native")
  set(WEFT_STATIC_MLIR ON)
endif()
set(WEFT_BUILD_TESTS OFF)
set(WEFT_BUILD_TOOLS OFF)
# What is there on every Linux since glibc 2.34: C++'s library comes along. (libgcc_s stays the system's: the static one
# asks for glibc 2.35.)
add_link_options(-static-libstdc++ -s)
# What nothing reaches stays out, and functions of the same code are one.
add_link_options(LINKER:--gc-sections LINKER:--icf=all LINKER:-O2)
add_library(WeftArc4Random OBJECT "${PROJECT_SOURCE_DIR}/cmake/Arc4Random.c")

# Licences and bill of materials of what is linked in, into the wheel's own metadata.
find_package(Python3 COMPONENTS Interpreter REQUIRED)
set(notices "${PROJECT_BINARY_DIR}/notices")
if(WEFT_BUILD_COMPILER)
  set(runtime_only)
else()
  set(runtime_only --runtime-only)
endif()
execute_process(COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/notices.py ${notices} ${PROJECT_VERSION} ${runtime_only}
                COMMAND_ERROR_IS_FATAL ANY)
install(DIRECTORY ${notices}/licenses ${notices}/sboms DESTINATION ${SKBUILD_METADATA_DIR} COMPONENT notices)
