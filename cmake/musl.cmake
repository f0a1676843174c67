# The C library musl, by the wrapper of Debian's package musl-tools; on a system of musl, the system's own compiler.
execute_process(COMMAND cc -dumpmachine OUTPUT_VARIABLE hak_machine OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT hak_machine MATCHES "musl")
  set(CMAKE_C_COMPILER musl-gcc)
  # The wrapper knows no headers but musl's; those of the kernel serve any C library.
  set(hak_kernel ${CMAKE_BINARY_DIR}/kernel-headers)
  file(MAKE_DIRECTORY ${hak_kernel})
  foreach(folder linux asm-generic)
    file(CREATE_LINK /usr/include/${folder} ${hak_kernel}/${folder} SYMBOLIC)
  endforeach()
  file(CREATE_LINK /usr/include/${hak_machine}/asm ${hak_kernel}/asm SYMBOLIC)
  set(CMAKE_C_FLAGS_INIT "-isystem ${hak_kernel}")
  # Nor does it ask for the table of unwind tables, without which reports have no stacks.
  foreach(kind EXE SHARED MODULE)
    set(CMAKE_${kind}_LINKER_FLAGS_INIT -Wl,--eh-frame-hdr)
  endforeach()
  # Nothing of the system's own libraries is found.
  set(CMAKE_FIND_ROOT_PATH ${CMAKE_BINARY_DIR}/musl-root)
  set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
  set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
  set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
endif()
