# What names the functions of CPython 3.9 to 3.11 (tools/hakmem_python): a small library and the file by which Python finds it, in
# a folder of their own, which `hakmem profile` puts before all others in PYTHONPATH.
set(python ${PROJECT_SOURCE_DIR}/tools/hakmem_python)
set(python_dir ${PROJECT_BINARY_DIR}/hakmem/python)
add_library(hakmem_python MODULE ${python}/functions.c)
set_target_properties(hakmem_python PROPERTIES PREFIX "" OUTPUT_NAME functions LIBRARY_OUTPUT_DIRECTORY ${python_dir})
target_compile_definitions(hakmem_python PRIVATE _GNU_SOURCE=1)
# -O2 in all flavours: what evaluates a frame must leave the stack by a jump.
target_compile_options(hakmem_python PRIVATE -std=gnu17 -O2 ${HAK_WARNINGS} -fvisibility=hidden
  -ffile-prefix-map=${PROJECT_BINARY_DIR}=. -ffile-prefix-map=${PROJECT_SOURCE_DIR}=.)
target_link_options(hakmem_python PRIVATE -Wl,-s -Wl,-z,now -Wl,-z,relro -Wl,-z,noexecstack)
if(HAK_GLIBC)
  target_link_options(hakmem_python PRIVATE -Wl,--no-undefined)
else() # as the allocator: one that names musl's libc.so serves no other C library
  target_link_options(hakmem_python PRIVATE -nodefaultlibs)
  target_link_libraries(hakmem_python PRIVATE gcc)
endif()
add_custom_command(OUTPUT ${python_dir}/sitecustomize.py
  COMMAND ${CMAKE_COMMAND} -E copy ${python}/sitecustomize.py ${python_dir}/sitecustomize.py
  DEPENDS ${python}/sitecustomize.py COMMENT "" VERBATIM)
add_custom_target(python_names ALL DEPENDS ${python_dir}/sitecustomize.py hakmem_python)
add_dependencies(hakmem python_names) # what builds or installs the libraries does so with this
add_dependencies(hakmem_static python_names)
install(FILES $<TARGET_FILE:hakmem_python> ${python}/sitecustomize.py DESTINATION ${CMAKE_INSTALL_LIBDIR}/hakmem/python)
