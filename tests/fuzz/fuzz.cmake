# SPDX-License-Identifier: MIT
#
# Fuzz targets. With TN_FUZZ (clang) each fuzz_<what>.c is a libFuzzer program build/fuzz/<what>:
#
#   tools/setup.sh fuzz
#   cmake -S . -B build/fuzz -DCMAKE_C_COMPILER=clang -DTN_FUZZ=ON -DTN_SANITIZE=address+undefined
#   cmake --build build/fuzz -j2 --target fuzz
#   build/fuzz/fuzz/api -max_total_time=600 FOLDER tests/fuzz/corpus/api
#
# Without, it is an ordinary test fuzz.<what>: the corpus and mutations of it for a second.

set(tn_fuzz_dir ${CMAKE_CURRENT_LIST_DIR})
set(tn_fuzz_targets machine api)
if(TARGET tenure_tool) # their files are the program's
  list(APPEND tn_fuzz_targets workload plan)
  set(tn_fuzz_tool ${TN_TOOL_SOURCES})
  list(FILTER tn_fuzz_tool EXCLUDE REGEX "/main\\.c$")
  add_library(tn_fuzz_tool STATIC ${tn_fuzz_tool})
  target_include_directories(tn_fuzz_tool PUBLIC ${PROJECT_SOURCE_DIR}/tools/tenure)
  target_link_libraries(tn_fuzz_tool PUBLIC
    tn_flags tenure_static PkgConfig::JANSSON PkgConfig::XXHASH Threads::Threads m)
endif()
file(GLOB tn_fuzz_api CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/property/manager_*_util.c)

add_custom_target(fuzz)
foreach(what ${tn_fuzz_targets})
  set(program fuzz_${what})
  add_executable(${program} ${tn_fuzz_dir}/fuzz_${what}.c ${tn_fuzz_dir}/fuzz_util.c)
  add_dependencies(fuzz ${program})
  target_include_directories(${program} PRIVATE ${tn_fuzz_dir} ${PROJECT_SOURCE_DIR}/tests/property)
  target_link_libraries(${program} PRIVATE tn_test_support)
  if(what STREQUAL "api")
    target_sources(${program} PRIVATE ${tn_fuzz_api})
  elseif(NOT what STREQUAL "machine")
    target_link_libraries(${program} PRIVATE tn_fuzz_tool)
  endif()
  if(TN_FUZZ)
    target_link_options(${program} PRIVATE -fsanitize=fuzzer)
    set_target_properties(${program} PROPERTIES
      OUTPUT_NAME ${what} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz)
    continue()
  endif()
  target_sources(${program} PRIVATE ${tn_fuzz_dir}/fuzz_main_util.c)
  target_compile_definitions(${program} PRIVATE FUZZ_TARGET="${what}")
  set_target_properties(${program} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  add_test(NAME fuzz.${what} COMMAND ${tn_test_wrapper} $<TARGET_FILE:${program}>)
  set_tests_properties(fuzz.${what} PROPERTIES
    LABELS fuzz SKIP_RETURN_CODE 77 TIMEOUT ${TN_TEST_TIMEOUT} ENVIRONMENT "${tn_test_env}")
endforeach()
