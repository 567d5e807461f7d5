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
foreach(variant full old ancient broken machine)
  tn_cuda_shim(${variant})
endforeach()
foreach(variant old ancient)
  set(map ${CMAKE_CURRENT_LIST_DIR}/shim/${variant}.map)
  target_link_options(cuda_shim_${variant} PRIVATE LINKER:--version-script=${map})
  set_target_properties(cuda_shim_${variant} PROPERTIES LINK_DEPENDS ${map})
endforeach()
# One with a machine of its own, for whole programs, that also runs the evaluator's kernels.
target_sources(cuda_shim_machine PRIVATE ${CMAKE_CURRENT_LIST_DIR}/shim_machine/shim_machine.c)
target_compile_definitions(cuda_shim_machine PRIVATE SHIM_MACHINE=1)
target_include_directories(cuda_shim_machine PRIVATE
  ${CMAKE_CURRENT_LIST_DIR}/shim ${PROJECT_SOURCE_DIR}/tools/tenure)
target_link_libraries(cuda_shim_machine PRIVATE ${CMAKE_DL_LIBS})
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

# The cases of the specification, over the test driver: the programs of tests/spec again. Not the
# one that takes seconds; its subject are threads, not drivers. Their results count once only.
file(GLOB tn_spec_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/spec/spec_*.c)
list(FILTER tn_spec_files EXCLUDE REGEX "_(common|util|guard_threads)\\.c$")
if(TN_SANITIZE OR TN_COVERAGE) # the cases themselves run there over the simulator
  set(tn_spec_files)
endif()
foreach(file ${tn_spec_files})
  get_filename_component(stem ${file} NAME_WE)
  add_test(NAME cuda.${stem} COMMAND ${tn_test_wrapper} $<TARGET_FILE:${stem}>)
  set_tests_properties(cuda.${stem} PROPERTIES LABELS cuda SKIP_RETURN_CODE 77
    TIMEOUT ${TN_TEST_TIMEOUT} ENVIRONMENT "${tn_test_env};TN_TEST_DRIVER=shim;TN_RESULTS_DIR=")
endforeach()

if(TARGET tenure_tool)
  add_test(NAME cuda.info COMMAND ${tn_test_wrapper} sh ${CMAKE_CURRENT_LIST_DIR}/info.sh)
  set_tests_properties(cuda.info PROPERTIES LABELS cuda SKIP_RETURN_CODE 77
    TIMEOUT ${TN_TEST_TIMEOUT}
    ENVIRONMENT "${tn_test_env};TENURE=$<TARGET_FILE:tenure_tool>;SHIM=${tn_shim_dir}")
endif()

# Serving on a real device, as far as that goes without one; the program that a build without nvcc has.
if(TARGET tenure_tool)
  add_executable(tenure_tool_without ${PROJECT_SOURCE_DIR}/tools/tenure/device_none.c
    $<FILTER:$<TARGET_OBJECTS:tenure_tool>,EXCLUDE,kernel_ptx|device>)
  target_include_directories(tenure_tool_without PRIVATE ${PROJECT_SOURCE_DIR}/tools/tenure)
  target_link_libraries(tenure_tool_without PRIVATE $<TARGET_PROPERTY:tenure_tool,LINK_LIBRARIES>)
  add_dependencies(tenure_tool_without tenure_tool) # whose objects it takes
  set_target_properties(tenure_tool_without PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  set(env "TENURE=$<TARGET_FILE:tenure_tool>;WITHOUT=$<TARGET_FILE:tenure_tool_without>")
  list(APPEND env "SHIM=${tn_shim_dir}" "EVALUATOR=$<BOOL:${tn_have_evaluator}>")
  add_test(NAME cuda.serve COMMAND ${tn_test_wrapper} sh ${CMAKE_CURRENT_LIST_DIR}/serve.sh)
  set_tests_properties(cuda.serve PROPERTIES LABELS cuda SKIP_RETURN_CODE 77
    TIMEOUT ${TN_TEST_TIMEOUT} ENVIRONMENT "${tn_test_env};${env}")
  if(tn_have_evaluator)
    get_filename_component(nvcc_dir ${TN_NVCC} REALPATH)
    get_filename_component(nvcc_dir ${nvcc_dir} DIRECTORY)
    find_program(TN_PTXAS ptxas HINTS ${nvcc_dir})
    add_test(NAME cuda.ptx
      COMMAND sh ${CMAKE_CURRENT_LIST_DIR}/ptx.sh ${tn_kernel_ptx} $<$<BOOL:${TN_PTXAS}>:${TN_PTXAS}>)
    set_tests_properties(cuda.ptx PROPERTIES LABELS cuda SKIP_RETURN_CODE 77)
  endif()
endif()

# Bandwidth, for tools/gpu-check.sh: it only has to work here.
add_executable(cuda_bandwidth ${CMAKE_CURRENT_LIST_DIR}/bandwidth.c)
set_target_properties(cuda_bandwidth PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
target_include_directories(cuda_bandwidth SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
target_link_libraries(cuda_bandwidth PRIVATE tn_flags tenure ${CMAKE_DL_LIBS})
add_dependencies(cuda_bandwidth cuda_shim_machine)
add_test(NAME cuda.bandwidth COMMAND ${tn_test_wrapper} sh ${CMAKE_CURRENT_LIST_DIR}/bandwidth.sh
  $<TARGET_FILE:cuda_bandwidth> ${tn_shim_dir})
set_tests_properties(cuda.bandwidth PROPERTIES LABELS cuda TIMEOUT ${TN_TEST_TIMEOUT}
  ENVIRONMENT "${tn_test_env}")

if(TARGET tenure_tool AND NOT TN_SANITIZE)
  add_test(NAME cuda.gpu_check COMMAND sh ${CMAKE_CURRENT_LIST_DIR}/gpu_check.sh)
  set_tests_properties(cuda.gpu_check PROPERTIES LABELS cuda TIMEOUT ${TN_TEST_TIMEOUT}
    ENVIRONMENT "${tn_test_env};${env};BUILD=${CMAKE_BINARY_DIR}")
endif()

# Against the stub library, each name that is loaded; the real driver would do as well.
find_library(TN_CUDA_STUB_LIBRARY cuda NO_DEFAULT_PATH
  PATHS ${CUDAToolkit_LIBRARY_DIR} ${CUDAToolkit_LIBRARY_ROOT}/lib64 PATH_SUFFIXES stubs)
if(NOT TN_CUDA_STUB_LIBRARY AND TARGET CUDA::cuda_driver)
  get_target_property(TN_CUDA_STUB CUDA::cuda_driver IMPORTED_LOCATION)
elseif(TN_CUDA_STUB_LIBRARY)
  set(TN_CUDA_STUB ${TN_CUDA_STUB_LIBRARY})
endif()
