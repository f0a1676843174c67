# What names the functions of CPython 3.9 to 3.11 (tools/hakmem_python): a small library and the file by which Python finds it, in
# a folder of their own, which `hakmem profile` puts before all others in PYTHONPATH.
set(HAK_PYTHON_SOURCE ${PROJECT_SOURCE_DIR}/tools/hakmem_python)
set(HAK_PYTHON_DIR ${PROJECT_BINARY_DIR}/hakmem/python)
add_library(hakmem_python_functions MODULE EXCLUDE_FROM_ALL ${HAK_PYTHON_SOURCE}/functions.c)
set_target_properties(hakmem_python_functions PROPERTIES PREFIX "" OUTPUT_NAME functions LIBRARY_OUTPUT_DIRECTORY ${HAK_PYTHON_DIR})
target_compile_definitions(hakmem_python_functions PRIVATE _GNU_SOURCE=1)
# -O2 in all flavours: what evaluates a frame must leave the stack by a jump.
target_compile_options(hakmem_python_functions PRIVATE -std=gnu17 -O2 ${HAK_WARNINGS} -fvisibility=hidden
  -ffile-prefix-map=${PROJECT_BINARY_DIR}=. -ffile-prefix-map=${PROJECT_SOURCE_DIR}=.)
target_link_options(hakmem_python_functions PRIVATE -Wl,-s -Wl,-z,now -Wl,-z,relro -Wl,-z,noexecstack)
target_link_options(hakmem_python_functions PRIVATE ${HAK_LIBC_FLAGS}) # as the allocator
target_link_libraries(hakmem_python_functions PRIVATE gcc)
set_target_properties(hakmem_python_functions PROPERTIES LINK_DEPENDS "${HAK_LIBC_FILES}")
if(HAK_LIBC_TARGETS)
  add_dependencies(hakmem_python_functions ${HAK_LIBC_TARGETS})
endif()
add_custom_command(OUTPUT ${HAK_PYTHON_DIR}/sitecustomize.py
  COMMAND ${CMAKE_COMMAND} -E copy ${HAK_PYTHON_SOURCE}/sitecustomize.py ${HAK_PYTHON_DIR}/sitecustomize.py
  DEPENDS ${HAK_PYTHON_SOURCE}/sitecustomize.py COMMENT "" VERBATIM)
set(HAK_PYTHON_ALL "") # in another project: with the libraries, or not at all
if(PROJECT_IS_TOP_LEVEL)
  set(HAK_PYTHON_ALL ALL)
endif()
add_custom_target(hakmem_python ${HAK_PYTHON_ALL} DEPENDS ${HAK_PYTHON_DIR}/sitecustomize.py hakmem_python_functions)
add_dependencies(hakmem hakmem_python) # what builds or installs the libraries does so with this
add_dependencies(hakmem_static hakmem_python)
install(FILES $<TARGET_FILE:hakmem_python_functions> ${HAK_PYTHON_SOURCE}/sitecustomize.py DESTINATION ${CMAKE_INSTALL_LIBDIR}/hakmem/python)
