# SPDX-License-Identifier: MIT
#
# Tests of the CUDA backend, where the Toolkit is: a driver for tests (shim/), in variants, each a
# libcuda.so.1 in a folder of its own; the conformance suite over it; the programs of this folder.
set(tn_shim_dir ${CMAKE_BINARY_DIR}/tests/cuda_shim)
file(GLOB tn_shim_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/shim/*.c)

function(tn_cuda_shim variant)
  add_library(cuda_shim_${variant} SHARED ${tn_shim_sources})
  set_target_properties(cuda_shim_${variant} PROPERTIES
    PREFIX lib OUTPUT_NAME cuda SUFFIX .so.1 C_VISIBILITY_PRESET hidden
    LIBRARY_OUTPUT_DIRECTORY ${tn_shim_dir}/${variant})
  target_include_directories(cuda_shim_${variant} SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
  target_include_directories(cuda_shim_${variant} PRIVATE ${PROJECT_SOURCE_DIR}/include
    ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests/support)
  target_compile_options(cuda_shim_${variant} PRIVATE -Wno-missing-prototypes) # cuda.h has them
  target_link_libraries(cuda_shim_${variant} PRIVATE tn_flags Threads::Threads)
  add_dependencies(tn_test_support cuda_shim_${variant})
endfunction()
foreach(variant full old ancient broken)
  tn_cuda_shim(${variant})
endforeach()
foreach(variant old ancient)
  set(map ${CMAKE_CURRENT_LIST_DIR}/shim/${variant}.map)
  target_link_options(cuda_shim_${variant} PRIVATE LINKER:--version-script=${map})
  set_target_properties(cuda_shim_${variant} PROPERTIES LINK_DEPENDS ${map})
endforeach()
target_compile_definitions(cuda_shim_broken PRIVATE SHIM_INIT_CODE=999)
target_compile_definitions(tn_test_support PRIVATE TN_CUDA_SHIM_DIR="${tn_shim_dir}")

set(tn_test_prefix cuda_)
file(GLOB tn_conf_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/conformance/conf_*.c)
foreach(file ${tn_conf_files})
  tn_test(conformance ${file} ${CMAKE_CURRENT_LIST_DIR}/backend_cuda.c)
endforeach()
set(tn_test_prefix "")
file(GLOB tn_cuda_files CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/test_*.c)
file(GLOB tn_cuda_common CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*_util.c)
foreach(file ${tn_cuda_files})
  tn_test(cuda ${file} ${tn_cuda_common})
endforeach()
