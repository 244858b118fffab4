# Every header compiles alone. A header x.h whose x.cc (or, for a header without one, x_test.cc
# includes it first, if that is compiled alone) has its proof there already, and tools/tidy.py keeps
# it first; each of the others gets a translation unit of its own here.
function(weir_check_headers)
  file(GLOB_RECURSE headers RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS
       ${PROJECT_SOURCE_DIR}/include/weir/*.h ${PROJECT_SOURCE_DIR}/internal/*.h
       ${PROJECT_SOURCE_DIR}/src/*.h)
  if(NOT WEIR_HAS_GRPC)
    list(FILTER headers EXCLUDE REGEX "/grpc/")
  endif()
  set(units "")
  foreach(header IN LISTS headers)
    string(REGEX REPLACE "^(include/weir(/experimental)?|internal|src)/" "" name ${header})
    string(REGEX REPLACE "\\.h$" "" stem ${name})
    if(EXISTS ${PROJECT_SOURCE_DIR}/src/${stem}.cc OR
       (NOT WEIR_TEST_UNITY AND EXISTS ${PROJECT_SOURCE_DIR}/src/${stem}_test.cc))
      continue()
    endif()
    # A private header is found from its layer's folder, as its own sources find it.
    string(REGEX REPLACE "^(include|internal|src/[a-z]+)/" "" include_name ${header})
    string(MAKE_C_IDENTIFIER ${header} unit)
    set(unit ${CMAKE_BINARY_DIR}/headers/${unit}.cc)
    if(header MATCHES "^(src/[a-z]+)/")
      set_source_files_properties(${unit} PROPERTIES
        INCLUDE_DIRECTORIES ${PROJECT_SOURCE_DIR}/${CMAKE_MATCH_1})
    endif()
    # Twice: a header without its guard would fail as well.
    file(CONFIGURE OUTPUT ${unit}
         CONTENT "#include \"${include_name}\"\n#include \"${include_name}\"\n")
    list(APPEND units ${unit})
  endforeach()
  if(units)
    get_property(layers GLOBAL PROPERTY WEIR_LAYERS)
    get_property(optional_layers GLOBAL PROPERTY WEIR_OPTIONAL_LAYERS)
    list(APPEND layers ${optional_layers})
    list(TRANSFORM layers PREPEND weir_)
    add_library(weir_headers OBJECT ${units})
    target_link_libraries(weir_headers PRIVATE weir_compile ${layers})
    target_compile_options(weir_headers PRIVATE -O0 -g0)
  endif()
endfunction()
