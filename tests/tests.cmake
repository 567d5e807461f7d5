# SPDX-License-Identifier: MIT
#
# One program and one CTest entry per tests/<label>/*.c. Rules:
#   tests/support/*.c                linked into every test program (include path too)
#   tests/<label>/*_common.c, *_util.c, backend_*.c   linked into every program of that folder
#   tests/<label>/<prefix>_<stem>.c  program tests/<label>_<stem>, test "<label>.<stem>";
#                                    prefixes: test_ spec_ field_ fault_ conf_ tort_ prop_ abi_
#   tests/schedule/                  see schedule.cmake there
#   tests/cuda/                      see cuda.cmake there; only where the CUDA Toolkit is
#   tests/cli/*.sh                   test "cli.<stem>", run with TENURE=<the program>
#
# Exit 77 is a skip. A file may hold `/* TN_TEST_TIMEOUT 300 */` where the default is too short.

pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)
pkg_check_modules(TEST_JANSSON QUIET IMPORTED_TARGET jansson)

set(TN_TEST_LABELS unit spec field fault torture conformance property abi)
set(TN_TEST_TIMEOUT 600 CACHE STRING "Seconds before CTest ends a test that names no time of its own")

file(GLOB tn_support_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/support/*.c)
add_library(tn_test_support STATIC ${tn_support_sources})
target_include_directories(tn_test_support PUBLIC
  ${PROJECT_SOURCE_DIR}/tests/support ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(tn_test_support PUBLIC
  tn_flags tenure_static PkgConfig::CMOCKA PkgConfig::URCU PkgConfig::XXHASH Threads::Threads)

# The environment of every test: a sanitizer that finds something must fail the test.
set(tn_test_env
  "TN_SOURCE_DIR=${PROJECT_SOURCE_DIR}"
  "ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1"
  "UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1"
  "TSAN_OPTIONS=halt_on_error=0:second_deadlock_stack=1:history_size=4")

# A thread-sanitized program refuses to start where the kernel randomises mappings too widely.
set(tn_test_wrapper "")
if(TN_SANITIZE STREQUAL "thread")
  find_program(TN_SETARCH setarch)
  if(TN_SETARCH)
    execute_process(COMMAND ${TN_SETARCH} -R true RESULT_VARIABLE tn_setarch_rc
                    OUTPUT_QUIET ERROR_QUIET)
    if(tn_setarch_rc EQUAL 0)
      set(tn_test_wrapper ${TN_SETARCH} -R)
    endif()
  endif()
endif()

function(tn_test label file)
  get_filename_component(stem ${file} NAME_WE)
  string(REGEX REPLACE "^(test|spec|field|fault|conf|tort|prop|abi)_" "" stem ${stem})
  set(stem ${tn_test_prefix}${stem})
  set(program ${label}_${stem})
  add_executable(${program} ${file} ${ARGN})
  set_target_properties(${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_include_directories(${program} PRIVATE ${PROJECT_SOURCE_DIR}/tests/${label})
  target_link_libraries(${program} PRIVATE tn_test_support)
  if(tn_test_prefix) # the same tests again: other results
    target_compile_definitions(${program} PRIVATE TN_TEST_SUITE_SUFFIX=".cuda")
  endif()
  add_test(NAME ${label}.${stem} COMMAND ${tn_test_wrapper} $<TARGET_FILE:${program}>)
  set(timeout ${TN_TEST_TIMEOUT})
  file(STRINGS ${file} own_timeout REGEX "TN_TEST_TIMEOUT [0-9]+" LIMIT_COUNT 1)
  if(own_timeout MATCHES "TN_TEST_TIMEOUT ([0-9]+)")
    set(timeout ${CMAKE_MATCH_1})
  endif()
  set_tests_properties(${label}.${stem} PROPERTIES
    LABELS ${label} SKIP_RETURN_CODE 77 TIMEOUT ${timeout} ENVIRONMENT "${tn_test_env}")
endfunction()

foreach(label ${TN_TEST_LABELS})
  file(GLOB tn_label_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${label}/*.c)
  set(tn_label_common ${tn_label_files})
  list(FILTER tn_label_common INCLUDE REGEX "/([^/]*_(common|util)|backend_[^/]*)\\.c$")
  if(tn_label_common)
    list(REMOVE_ITEM tn_label_files ${tn_label_common})
  endif()
  foreach(file ${tn_label_files})
    tn_test(${label} ${file} ${tn_label_common})
  endforeach()
endforeach()

# Parts of the program.
if(TARGET tenure_tool)
  set(tn_tool_dir ${PROJECT_SOURCE_DIR}/tools/tenure)
  tn_test(tool ${CMAKE_CURRENT_LIST_DIR}/tool/test_steps.c ${tn_tool_dir}/steps.c
    ${tn_tool_dir}/jump.c ${tn_tool_dir}/evaluate.c ${tn_tool_dir}/content.c)
  target_include_directories(tool_steps PRIVATE ${tn_tool_dir})
endif()

set(TN_CUDA_STUB "")
if(tn_have_cuda)
  include(${CMAKE_CURRENT_LIST_DIR}/cuda/cuda.cmake)
endif()
add_test(NAME cuda.names COMMAND sh ${CMAKE_CURRENT_LIST_DIR}/cuda/names.sh
  "${TN_CUDA_STUB}" $<TARGET_FILE:tenure>)
set_tests_properties(cuda.names PROPERTIES LABELS cuda SKIP_RETURN_CODE 77)

if(TARGET tenure_tool)
  file(GLOB tn_cli_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/cli/*.sh)
  foreach(file ${tn_cli_files})
    get_filename_component(stem ${file} NAME_WE)
    string(REGEX REPLACE "^(test|cli)_" "" stem ${stem})
    if(stem MATCHES "_common$|_util$") # sourced by the others
      continue()
    endif()
    if(TN_SANITIZE AND stem STREQUAL "workload_check_million") # it is about time
      continue()
    endif()
    add_test(NAME cli.${stem} COMMAND ${tn_test_wrapper} sh ${file})
    set_tests_properties(cli.${stem} PROPERTIES
      LABELS cli SKIP_RETURN_CODE 77 TIMEOUT ${TN_TEST_TIMEOUT}
      ENVIRONMENT "${tn_test_env};TENURE=$<TARGET_FILE:tenure_tool>")
  endforeach()
endif()

include(${CMAKE_CURRENT_LIST_DIR}/schedule/schedule.cmake)

# Models of the protocols and their mutants; skips where spin is missing. Not in sanitizer builds:
# they run none of our code.
if(NOT TN_SANITIZE AND NOT TN_COVERAGE)
  add_test(NAME model.promela COMMAND sh ${PROJECT_SOURCE_DIR}/tests/model/run.sh)
  set_tests_properties(model.promela PROPERTIES
    LABELS model SKIP_RETURN_CODE 77 TIMEOUT 1800 ENVIRONMENT "${tn_test_env}")
endif()

# The example of README.md, as it stands there.
file(READ ${PROJECT_SOURCE_DIR}/README.md tn_readme)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/README.md)
string(REGEX MATCH "```c\n(([^`]|`[^`])*)\n```" tn_match "${tn_readme}")
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/readme_example.c CONTENT "${CMAKE_MATCH_1}\n" @ONLY)
add_executable(readme_example ${CMAKE_BINARY_DIR}/readme_example.c)
target_link_libraries(readme_example PRIVATE tn_flags tenure)
add_test(NAME readme.example COMMAND ${tn_test_wrapper} $<TARGET_FILE:readme_example>)
set_tests_properties(readme.example PROPERTIES
  LABELS readme PASS_REGULAR_EXPRESSION "lent and returned" ENVIRONMENT "${tn_test_env}")
