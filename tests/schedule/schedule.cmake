# SPDX-License-Identifier: MIT
#
# Schedule exploration: the library once more, with TN_SCHEDULE=1 where threads meet, and programs
# that link it instead of the real one. Not with ThreadSanitizer, to which one thread at a time is
# no race; not with gcov, whose counters a schedule's process leaves unwritten.

if(TN_SANITIZE STREQUAL "thread" OR TN_COVERAGE)
  return()
endif()

set(tn_schedule_plain ${TN_SOURCES})
set(tn_schedule_points ${TN_SOURCES})
list(FILTER tn_schedule_plain INCLUDE REGEX "/src/(driver|value|base/(memory|error|point|text|status|structs))")
list(FILTER tn_schedule_plain EXCLUDE REGEX "/src/driver/cuda/")
list(FILTER tn_schedule_points EXCLUDE REGEX "/src/(driver|value|base/(memory|error|point|text|status|structs))")

foreach(kind plain points)
  add_library(tenure_schedule_${kind} OBJECT EXCLUDE_FROM_ALL ${tn_schedule_${kind}})
  target_compile_definitions(tenure_schedule_${kind} PRIVATE TN_BUILDING=1 TN_CHECKS=1)
  target_include_directories(tenure_schedule_${kind} PRIVATE
    ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(tenure_schedule_${kind} PRIVATE
    tn_flags Threads::Threads PkgConfig::URCU PkgConfig::XXHASH)
endforeach()
target_compile_definitions(tenure_schedule_points PRIVATE TN_SCHEDULE=1)
target_compile_options(tenure_schedule_points PRIVATE -Wno-maybe-uninitialized)

set(tn_schedule_wraps "")
foreach(name pthread_mutex_lock pthread_mutex_trylock pthread_mutex_unlock pthread_cond_wait
    pthread_cond_timedwait pthread_cond_broadcast sem_wait sem_post pthread_create pthread_join
    sched_yield nanosleep clock_gettime syscall free malloc calloc aligned_alloc
    urcu_memb_read_lock urcu_memb_read_unlock urcu_memb_read_ongoing urcu_memb_synchronize_rcu
    cds_wfcq_enqueue cds_wfcq_empty __cds_wfcq_dequeue_nonblocking)
  list(APPEND tn_schedule_wraps "LINKER:--wrap=${name}")
endforeach()

file(GLOB tn_schedule_common CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*_util.c)
file(GLOB tn_schedule_files CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/test_*.c)
add_library(tn_schedule_support OBJECT EXCLUDE_FROM_ALL ${tn_schedule_common}
  ${PROJECT_SOURCE_DIR}/tests/support/tn_test.c)
target_compile_definitions(tn_schedule_support PUBLIC TN_SCHEDULE=1 TN_CHECKS=1)
target_include_directories(tn_schedule_support PUBLIC ${CMAKE_CURRENT_LIST_DIR}
  ${PROJECT_SOURCE_DIR}/tests/support ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(tn_schedule_support PUBLIC tn_flags PkgConfig::CMOCKA PkgConfig::URCU
  PkgConfig::XXHASH Threads::Threads ${CMAKE_DL_LIBS} m)

foreach(file ${tn_schedule_files})
  get_filename_component(stem ${file} NAME_WE)
  string(REGEX REPLACE "^test_" "" stem ${stem})
  add_executable(schedule_${stem} ${file} $<TARGET_OBJECTS:tn_schedule_support>
    $<TARGET_OBJECTS:tenure_schedule_plain> $<TARGET_OBJECTS:tenure_schedule_points>)
  set_target_properties(schedule_${stem} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_link_libraries(schedule_${stem} PRIVATE tn_schedule_support)
  target_link_options(schedule_${stem} PRIVATE ${tn_schedule_wraps})
  add_test(NAME schedule.${stem} COMMAND $<TARGET_FILE:schedule_${stem}>)
  set_tests_properties(schedule.${stem} PROPERTIES
    LABELS schedule SKIP_RETURN_CODE 77 TIMEOUT 1200 ENVIRONMENT "${tn_test_env}")
  # Once as on x86-64, once on weak memory, which a sanitizer has nothing to add to.
  if(NOT TN_SANITIZE)
    add_test(NAME schedule.weak_${stem} COMMAND $<TARGET_FILE:schedule_${stem}>)
    set_tests_properties(schedule.weak_${stem} PROPERTIES
      LABELS schedule SKIP_RETURN_CODE 77 TIMEOUT 1200
      ENVIRONMENT "${tn_test_env};TN_SCHEDULE_MEMORY=weak;TN_RESULTS_DIR=")
  endif()
endforeach()
