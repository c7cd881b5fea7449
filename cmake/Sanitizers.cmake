# Part of Weft. SPDX-License-Identifier: Apache-2.0
# A build with WEFT_SANITIZE. The sanitizer's runtime is a shared library of its own, so that one runtime serves a process
# whose program was built without it: tools/sanitized.sh preloads it into Python, which then loads the extension modules.

if(WEFT_SANITIZE MATCHES "thread")
  set(WEFT_SANITIZER_LIBRARY libclang_rt.tsan-x86_64.so)
else()
  set(WEFT_SANITIZER_LIBRARY libclang_rt.asan-x86_64.so) # (It has the checks of undefined behaviour, too.)
endif()
execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=${WEFT_SANITIZER_LIBRARY}
                OUTPUT_VARIABLE WEFT_SANITIZER_RUNTIME OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
if(NOT IS_ABSOLUTE "${WEFT_SANITIZER_RUNTIME}")
  message(FATAL_ERROR "expected ${CMAKE_CXX_COMPILER} to have ${WEFT_SANITIZER_LIBRARY}; install libclang-rt-22-dev")
endif()
set(WEFT_SANITIZER_RUNTIME "${WEFT_SANITIZER_RUNTIME}" CACHE INTERNAL "What tools/sanitized.sh preloads")
get_filename_component(WEFT_SANITIZER_FOLDER "${WEFT_SANITIZER_RUNTIME}" DIRECTORY)

add_compile_options(-fsanitize=${WEFT_SANITIZE} -fno-omit-frame-pointer)
if(WEFT_SANITIZE MATCHES "undefined")
  add_compile_options(-fno-sanitize-recover=undefined)
endif()
add_link_options(-fsanitize=${WEFT_SANITIZE} -shared-libsan LINKER:-rpath,${WEFT_SANITIZER_FOLDER})
