# weir_library(<layer> [SOURCES …] [DEPENDS layer…] [PACKAGES target…]
#              [TESTS …] [TEST_PACKAGES target…] [BENCHES …] [OPTIONAL])
#
# Makes the static library weir_<layer> (an interface library if it has no sources), the test
# program weir_<layer>_test and the benchmark program weir_<layer>_bench. DEPENDS names layers,
# PACKAGES third-party targets. A layer's folder in src/ is on the include path of its own sources,
# tests and benchmarks only; what other layers may use is in include/ or internal/. File lists are
# explicit: tools/tidy.py reports a source that no list names. An OPTIONAL layer is not part of
# weir::weir: who wants it names it.
function(weir_library layer)
  cmake_parse_arguments(ARG "OPTIONAL" ""
    "SOURCES;DEPENDS;PACKAGES;TESTS;TEST_PACKAGES;BENCHES" ${ARGN})
  set(target weir_${layer})
  list(TRANSFORM ARG_DEPENDS PREPEND weir_)

  if(ARG_SOURCES)
    add_library(${target} STATIC ${ARG_SOURCES})
    set(scope PUBLIC)
    weir_unity(${target})
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:weir_compile>)
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  add_library(weir::${layer} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${layer})
  target_compile_features(${target} ${scope} cxx_std_20)
  target_include_directories(${target} ${scope}
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/internal>
    $<INSTALL_INTERFACE:include>)
  if(ARG_SOURCES)
    target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  endif()
  target_link_libraries(${target} ${scope} ${ARG_DEPENDS} Threads::Threads)
  weir_use_packages(${target} ${scope} ${ARG_PACKAGES})
  if(ARG_OPTIONAL)
    set_property(GLOBAL APPEND PROPERTY WEIR_OPTIONAL_LAYERS ${layer})
  else()
    set_property(GLOBAL APPEND PROPERTY WEIR_LAYERS ${layer})
  endif()

  if(WEIR_TESTS AND ARG_TESTS)
    weir_test(${target}_test SOURCES ${ARG_TESTS} LINK ${target} ${ARG_TEST_PACKAGES})
  endif()
  if(WEIR_BENCHES AND ARG_BENCHES)
    add_executable(${target}_bench ${ARG_BENCHES})
    target_include_directories(${target}_bench PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
    target_link_libraries(${target}_bench PRIVATE weir_compile ${target}
                          benchmark::benchmark benchmark::benchmark_main)
    set_property(GLOBAL APPEND PROPERTY WEIR_BENCH_TARGETS ${target}_bench)
  endif()
endfunction()

