# gRPC for C++, for those parts that need it. Nothing here is called by the core.

# weir_find_grpc(): sets WEIR_GRPC_FOUND in the caller's scope; if it is true, there are the targets
# PkgConfig::GRPCPP and PkgConfig::PROTOBUF, and the programs that weir_grpc_generate() runs.
function(weir_find_grpc)
  pkg_check_modules(GRPCPP QUIET IMPORTED_TARGET GLOBAL grpc++)
  pkg_check_modules(PROTOBUF QUIET IMPORTED_TARGET GLOBAL protobuf)
  find_program(WEIR_PROTOC protoc)
  find_program(WEIR_GRPC_CPP_PLUGIN grpc_cpp_plugin)
  find_program(WEIR_GRPC_PYTHON_PLUGIN grpc_python_plugin)
  set(found FALSE)
  if(TARGET PkgConfig::GRPCPP AND TARGET PkgConfig::PROTOBUF AND WEIR_PROTOC
     AND WEIR_GRPC_CPP_PLUGIN AND WEIR_GRPC_PYTHON_PLUGIN)
    set(found TRUE)
  endif()
  set(WEIR_GRPC_FOUND ${found} PARENT_SCOPE)
endfunction()

# weir_grpc_library(<name> x.proto…): a static library of what protoc makes of the files, compiled
# as one source each, without our warnings.
function(weir_grpc_library name)
  set(sources "")
  foreach(proto IN LISTS ARGN)
    get_filename_component(stem ${proto} NAME_WE)
    set(made ${stem}.pb.cc ${stem}.pb.h ${stem}.grpc.pb.cc ${stem}.grpc.pb.h)
    list(TRANSFORM made PREPEND ${CMAKE_CURRENT_BINARY_DIR}/)
    add_custom_command(OUTPUT ${made}
      COMMAND ${WEIR_PROTOC} -I ${CMAKE_CURRENT_SOURCE_DIR} --cpp_out=${CMAKE_CURRENT_BINARY_DIR}
              --grpc_out=${CMAKE_CURRENT_BINARY_DIR}
              --plugin=protoc-gen-grpc=${WEIR_GRPC_CPP_PLUGIN} ${proto}
      DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${proto} VERBATIM)
    list(APPEND sources ${made})
  endforeach()
  # The two sources of one file go together: those of two files have private names in common.
  add_library(${name} STATIC ${sources})
  set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 2)
  target_compile_options(${name} PRIVATE -O0)
  target_include_directories(${name} SYSTEM PUBLIC ${CMAKE_CURRENT_BINARY_DIR})
  target_link_libraries(${name} PUBLIC PkgConfig::GRPCPP PkgConfig::PROTOBUF)
endfunction()

# weir_grpc_python(<target> x.proto…): the same for Python, x_pb2.py and x_pb2_grpc.py.
function(weir_grpc_python target)
  set(all "")
  foreach(proto IN LISTS ARGN)
    get_filename_component(stem ${proto} NAME_WE)
    set(made ${CMAKE_CURRENT_BINARY_DIR}/${stem}_pb2.py
             ${CMAKE_CURRENT_BINARY_DIR}/${stem}_pb2_grpc.py)
    add_custom_command(OUTPUT ${made}
      COMMAND ${WEIR_PROTOC} -I ${CMAKE_CURRENT_SOURCE_DIR}
              --python_out=${CMAKE_CURRENT_BINARY_DIR} --grpc_out=${CMAKE_CURRENT_BINARY_DIR}
              --plugin=protoc-gen-grpc=${WEIR_GRPC_PYTHON_PLUGIN} ${proto}
      DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${proto} VERBATIM)
    list(APPEND all ${made})
  endforeach()
  add_custom_target(${target} ALL DEPENDS ${all})
endfunction()
