# SPDX-License-Identifier: MIT
#
# What the field tests run beside themselves: a program that loads the library at run time, the
# libraries that it has loaded before, and heaps to be preloaded.
set(tn_field_dir ${CMAKE_CURRENT_LIST_DIR})
set(tn_field_out ${PROJECT_BINARY_DIR}/tests/field)

function(tn_field_module name source)
  add_library(${name} MODULE ${tn_field_dir}/${source})
  set_target_properties(${name} PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${tn_field_out})
  target_compile_definitions(${name} PRIVATE _GNU_SOURCE ${ARGN})
endfunction()

# The program is linked to the sanitizer of the library, if any, and to nothing else.
add_executable(field_host ${tn_field_dir}/host/host.c)
set_target_properties(field_host PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${tn_field_out})
target_include_directories(field_host PRIVATE ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(field_host PRIVATE tn_flags Threads::Threads ${CMAKE_DL_LIBS})
tn_field_module(field_crowd_dynamic host/crowd.c CROWD_BYTES=256 CROWD_STATIC=0)
tn_field_module(field_crowd_static host/crowd.c CROWD_BYTES=16 CROWD_STATIC=1)

set(tn_field_env
  "TN_FIELD_HOST=$<TARGET_FILE:field_host>" "TN_FIELD_LIBRARY=$<TARGET_FILE:tenure>"
  "TN_FIELD_CROWD_DYNAMIC=$<TARGET_FILE:field_crowd_dynamic>"
  "TN_FIELD_CROWD_STATIC=$<TARGET_FILE:field_crowd_static>"
  "TN_FIELD_OBJECTS=${PROJECT_BINARY_DIR}/CMakeFiles/tenure_objects.dir/src")

# Heaps to be preloaded; a sanitizer brings its own. The prefixed one is the static jemalloc with
# its public names changed (heap/names).
if(NOT TN_SANITIZE AND NOT TN_COVERAGE)
  tn_field_module(field_count heap/count.c)
  target_compile_options(field_count PRIVATE -fno-builtin)
  target_link_libraries(field_count PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
  list(APPEND tn_field_env "TN_FIELD_COUNT=$<TARGET_FILE:field_count>"
    "TN_FIELD_PROGRAMS=${PROJECT_BINARY_DIR}/tests")
  find_library(TN_JEMALLOC_SHARED NAMES libjemalloc.so.2)
  if(TN_JEMALLOC_SHARED)
    list(APPEND tn_field_env "TN_FIELD_JEMALLOC=${TN_JEMALLOC_SHARED}")
  endif()
  find_library(TN_JEMALLOC_PIC NAMES libjemalloc_pic.a)
  if(TN_JEMALLOC_PIC AND CMAKE_OBJCOPY)
    set(tn_prefixed ${tn_field_out}/libfield_je.a)
    add_custom_command(OUTPUT ${tn_prefixed}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${tn_field_out}
      COMMAND ${CMAKE_OBJCOPY} --redefine-syms=${tn_field_dir}/heap/names ${TN_JEMALLOC_PIC}
        ${tn_prefixed}
      DEPENDS ${tn_field_dir}/heap/names VERBATIM)
    add_custom_target(field_je DEPENDS ${tn_prefixed})
    tn_field_module(field_prefixed heap/prefixed.c)
    add_dependencies(field_prefixed field_je)
    target_link_options(field_prefixed PRIVATE LINKER:--exclude-libs,ALL)
    target_link_libraries(field_prefixed PRIVATE ${tn_prefixed} Threads::Threads ${CMAKE_DL_LIBS} m)
    list(APPEND tn_field_env "TN_FIELD_PREFIXED=$<TARGET_FILE:field_prefixed>")
  endif()
endif()

foreach(stem h08 i02 i03 i05 objects)
  add_dependencies(field_${stem} field_host field_crowd_dynamic field_crowd_static tenure)
  set_property(TEST field.${stem} APPEND PROPERTY ENVIRONMENT "${tn_field_env}")
endforeach()
