# The optional layer grpc: admission and hedging for programs that use gRPC C++.
#   -DWEIR_GRPC=AUTO  build it if a gRPC that it is verified with is installed (the default)
#   -DWEIR_GRPC=ON    demand it
#   -DWEIR_GRPC=TRY   demand it, also with a newer gRPC: build and run its tests before you use it
#   -DWEIR_GRPC=OFF   leave it out; everything else builds without gRPC
# Sets WEIR_HAS_GRPC, and WEIR_HAS_PROTOC if .proto files can be compiled too: tests and examples
# need that, the library does not.
set(WEIR_GRPC AUTO CACHE STRING "The layer grpc: AUTO, ON, TRY or OFF")
set_property(CACHE WEIR_GRPC PROPERTY STRINGS AUTO ON TRY OFF)
set(WEIR_HAS_GRPC OFF)
set(WEIR_HAS_PROTOC OFF)

if(NOT WEIR_GRPC STREQUAL "OFF")
  if(WEIR_GRPC STREQUAL "AUTO")
    pkg_check_modules(GRPCPP QUIET IMPORTED_TARGET grpc++>=1.51 grpc++<1.52)
  elseif(WEIR_GRPC STREQUAL "TRY")
    pkg_check_modules(GRPCPP REQUIRED QUIET IMPORTED_TARGET grpc++>=1.51)
    add_compile_definitions(WEIR_GRPC_TRY)
  else()
    pkg_check_modules(GRPCPP REQUIRED QUIET IMPORTED_TARGET grpc++>=1.51 grpc++<1.52)
  endif()
  if(GRPCPP_FOUND)
    set(WEIR_HAS_GRPC ON)
    pkg_check_modules(PROTOBUF QUIET IMPORTED_TARGET protobuf)
    find_program(WEIR_PROTOC protoc)
    find_program(WEIR_GRPC_CPP_PLUGIN grpc_cpp_plugin)
    if(PROTOBUF_FOUND AND WEIR_PROTOC AND WEIR_GRPC_CPP_PLUGIN)
      set(WEIR_HAS_PROTOC ON)
    endif()
  endif()
  message(STATUS "weir_grpc: ${WEIR_HAS_GRPC}, with tests and examples: ${WEIR_HAS_PROTOC}")
endif()

# The headers of this layer name gRPC's types: whoever uses them needs gRPC's headers too.
set(WEIR_FIND_PkgConfig_GRPCPP "pkg_check_modules(GRPCPP REQUIRED QUIET IMPORTED_TARGET grpc++)")
set(WEIR_PC_PkgConfig_GRPCPP grpc++)
list(APPEND WEIR_PUBLIC_PACKAGES PkgConfig::GRPCPP)

# weir_grpc_proto(<target> <file.proto>…): a static library of the messages and services in .proto
# files of this folder. Include them by their path below the root of the project, with .grpc.pb.h.
function(weir_grpc_proto target)
  set(sources "")
  foreach(proto IN LISTS ARGN)
    set(input ${CMAKE_CURRENT_SOURCE_DIR}/${proto})
    file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR} ${input})
    string(REGEX REPLACE "\\.proto$" "" stem ${name})
    set(output ${CMAKE_BINARY_DIR}/proto/${stem})
    file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/proto)
    add_custom_command(
      OUTPUT ${output}.pb.cc ${output}.pb.h ${output}.grpc.pb.cc ${output}.grpc.pb.h
      COMMAND ${WEIR_PROTOC} -I ${PROJECT_SOURCE_DIR}
              --plugin=protoc-gen-grpc=${WEIR_GRPC_CPP_PLUGIN}
              --cpp_out=${CMAKE_BINARY_DIR}/proto --grpc_out=${CMAKE_BINARY_DIR}/proto ${name}
      WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
      DEPENDS ${input} VERBATIM)
    list(APPEND sources ${output}.pb.cc ${output}.grpc.pb.cc)
  endforeach()
  add_library(${target} STATIC ${sources})
  # Not our code: it is compiled as it comes, and quickly.
  target_compile_options(${target} PRIVATE -w -O1 -g0)
  target_include_directories(${target} SYSTEM PUBLIC ${CMAKE_BINARY_DIR}/proto)
  target_link_libraries(${target} PUBLIC PkgConfig::GRPCPP PkgConfig::PROTOBUF)
endfunction()

# weir_grpc_python(<target> x.proto…): the same for Python, x_pb2.py and x_pb2_grpc.py.
function(weir_grpc_python target)
  find_program(WEIR_GRPC_PYTHON_PLUGIN grpc_python_plugin REQUIRED)
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
