# SPDX-License-Identifier: MIT
#
# The kernels of `tenure serve --device cuda`: PTX, built into the program, where nvcc is and works.
# -DTN_NVCC=OFF builds without.
set(tn_have_evaluator OFF)
if(tn_have_cuda)
  find_program(TN_NVCC nvcc HINTS ${CUDAToolkit_BIN_DIR})
endif()
if(tn_have_cuda AND TN_NVCC)
  set(tn_kernel_source ${PROJECT_SOURCE_DIR}/tools/tenure/kernel.cu)
  set(tn_kernel_ptx ${PROJECT_BINARY_DIR}/evaluator/kernel.ptx)
  # The oldest device that every Toolkit since 11.3 knows; a driver compiles PTX for newer ones.
  set(tn_nvcc_command ${TN_NVCC} -ptx -O3 -arch=compute_75)
  if(NOT TN_NVCC_TRIED STREQUAL TN_NVCC)
    execute_process(COMMAND ${tn_nvcc_command} -o ${PROJECT_BINARY_DIR}/evaluator_try.ptx
        ${tn_kernel_source}
      RESULT_VARIABLE tn_nvcc_rc OUTPUT_QUIET ERROR_VARIABLE tn_nvcc_error)
    set(TN_NVCC_TRIED "${TN_NVCC}" CACHE INTERNAL "nvcc that TN_NVCC_WORKS is about")
    if(tn_nvcc_rc EQUAL 0)
      set(TN_NVCC_WORKS ON CACHE INTERNAL "nvcc compiles the kernels")
    else()
      set(TN_NVCC_WORKS OFF CACHE INTERNAL "nvcc compiles the kernels")
      message(STATUS "${TN_NVCC} does not work: ${tn_nvcc_error}")
    endif()
  endif()
  set(tn_have_evaluator ${TN_NVCC_WORKS})
endif()
if(NOT tn_have_evaluator)
  message(STATUS "No evaluator for real devices: there is no nvcc that works")
  list(FILTER TN_TOOL_SOURCES EXCLUDE REGEX "/tools/tenure/cuda/")
  return()
endif()

list(FILTER TN_TOOL_SOURCES EXCLUDE REGEX "/device_none\\.c$")
set(tn_kernel_array ${PROJECT_BINARY_DIR}/evaluator/kernel_ptx.c)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/evaluator)
add_custom_command(OUTPUT ${tn_kernel_ptx} ${tn_kernel_array}
  COMMAND ${tn_nvcc_command} -o ${tn_kernel_ptx} ${tn_kernel_source}
  COMMAND ${CMAKE_COMMAND} -DPTX=${tn_kernel_ptx} -DARRAY=${tn_kernel_array}
    -P ${PROJECT_SOURCE_DIR}/tools/cmake/embed_ptx.cmake
  DEPENDS ${tn_kernel_source} ${PROJECT_SOURCE_DIR}/tools/tenure/kernel.h
    ${PROJECT_SOURCE_DIR}/tools/cmake/embed_ptx.cmake
  COMMENT "Compiling the kernels" VERBATIM)
list(APPEND TN_TOOL_SOURCES ${tn_kernel_array})
