# SPDX-License-Identifier: MIT
#
# cmake -DPTX=FILE -DARRAY=FILE.c -P embed_ptx.cmake: the PTX becomes a C array. nvcc names the newest
# version of the language that it knows, which older drivers refuse; the kernels need nothing newer
# than 6.3, where sm_75 came (the test cuda.ptx has ptxas confirm it).
file(READ ${PTX} text)
string(REGEX REPLACE "\n\\.version [0-9]+\\.[0-9]+\n" "\n.version 6.3\n" text "${text}")
if(NOT text MATCHES "\n\\.version 6\\.3\n\\.target sm_75\n")
  message(FATAL_ERROR "${PTX} does not begin as PTX does")
endif()
file(WRITE ${PTX} "${text}")
file(READ ${PTX} bytes HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
string(REGEX REPLACE "((0x..,){16})" "\\1\n    " bytes "${bytes}")
file(WRITE ${ARRAY} "/* Made from PTX by the build. */
extern const char device_ptx[];
const char device_ptx[] = {
    ${bytes}0};
")
