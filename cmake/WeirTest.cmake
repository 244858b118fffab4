# Test programs and fuzz targets. `unit_tests` builds all unit test programs and nothing else,
# `fuzz_targets` all fuzz targets: the presets that exist for them build only those.
add_custom_target(unit_tests)
add_custom_target(fuzz_targets)

# What the sanitizers' runtimes are told; a plain `ctest` gets the same as `./dev test`.
set(WEIR_TEST_ENVIRONMENT "")
if(WEIR_SANITIZE)
  find_program(WEIR_SYMBOLIZER NAMES llvm-symbolizer-14 llvm-symbolizer)
  set(symbolizer "")
  if(WEIR_SYMBOLIZER)
    set(symbolizer ":external_symbolizer_path=${WEIR_SYMBOLIZER}")
  endif()
  string(CONCAT asan "ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1"
         ":check_initialization_order=1:strict_init_order=1:detect_leaks=1${symbolizer}")
  set(WEIR_TEST_ENVIRONMENT
    "${asan}"
    "UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1${symbolizer}"
    "TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1${symbolizer}")
endif()

# Test sources are compiled for speed of compiling: together (also where CMAKE_UNITY_BUILD is off),
# and less optimised than what they test: with a sanitizer, -O0 takes 0.4 times what -O1 does.
set(WEIR_TEST_FLAGS "" CACHE STRING "Compiler flags of test sources, after all others")
option(WEIR_TEST_UNITY "Compile the sources of a test program together" ${CMAKE_UNITY_BUILD})
separate_arguments(test_flags UNIX_COMMAND "${WEIR_TEST_FLAGS}")
add_library(weir_test_compile INTERFACE)
target_compile_options(weir_test_compile INTERFACE
  ${test_flags} $<$<BOOL:${WEIR_TEST_UNITY}>:-Wno-shadow>)

# weir_test(<name> SOURCES … LINK … [LABELS …] [TIMEOUT s]): a GoogleTest program, one ctest entry
# per test case. Default label: unit. Entries of other labels carry the program's name in front: the
# same case may also be a unit test, and ctest gives the properties of one name to all who bear it.
function(weir_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;LINK;LABELS" ${ARGN})
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  if(WEIR_SANITIZE OR WEIR_COVERAGE)
    math(EXPR ARG_TIMEOUT "4 * ${ARG_TIMEOUT}")  # Instrumented code is that much slower.
  endif()
  add_executable(${name} ${ARG_SOURCES})
  weir_unity(${name})
  set_target_properties(${name} PROPERTIES UNITY_BUILD ${WEIR_TEST_UNITY})
  foreach(source IN LISTS ARG_SOURCES)
    if(source MATCHES "allocation_probe\\.cc$")  # replaces operator new: not beside its users
      set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endforeach()
  target_include_directories(${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE
    weir_compile weir_test_compile ${ARG_LINK} GTest::gmock GTest::gtest_main)
  set(prefix "")
  if(NOT unit IN_LIST ARG_LABELS)
    set(prefix "${name}.")
  endif()
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
    TEST_PREFIX "${prefix}"
    PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT}
               ENVIRONMENT "${WEIR_TEST_ENVIRONMENT}")
  if(unit IN_LIST ARG_LABELS)
    add_dependencies(unit_tests ${name})
  endif()
endfunction()

# weir_fuzz(<name> LINK … [DICT file]): the libFuzzer target <name> from <name>.cc, and a test of
# label fuzz that replays corpus/<name>/ beside it and then mutates it for WEIR_FUZZ_SECONDS. The
# seed is fixed, so that machines differ only in how far they get. What a run finds stays in the
# build directory. To search longer:
#   build/fuzz/fuzz/<name> -max_total_time=600 build/fuzz/fuzz/found/<name> fuzz/corpus/<name>
set(WEIR_FUZZ_SECONDS 10 CACHE STRING "How long ctest runs each fuzz target")
function(weir_fuzz name)
  cmake_parse_arguments(ARG "" "DICT" "LINK" ${ARGN})
  add_executable(${name} ${name}.cc)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE weir_compile ${ARG_LINK})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  add_dependencies(fuzz_targets ${name})

  set(found ${CMAKE_CURRENT_BINARY_DIR}/found/${name})
  file(MAKE_DIRECTORY ${found})
  set(options -seed=1 -max_total_time=${WEIR_FUZZ_SECONDS} -timeout=10
      -rss_limit_mb=1024 -verbosity=0 -print_final_stats=1
      -artifact_prefix=${CMAKE_CURRENT_BINARY_DIR}/${name}-)
  if(ARG_DICT)
    list(APPEND options -dict=${CMAKE_CURRENT_SOURCE_DIR}/${ARG_DICT})
  endif()
  set(corpus ${CMAKE_CURRENT_SOURCE_DIR}/corpus/${name})
  if(NOT IS_DIRECTORY ${corpus})
    set(corpus "")
  endif()
  add_test(NAME fuzz.${name} COMMAND ${name} ${options} ${found} ${corpus})
  math(EXPR limit "${WEIR_FUZZ_SECONDS} + 60")
  set_tests_properties(fuzz.${name} PROPERTIES LABELS fuzz TIMEOUT ${limit}
    ENVIRONMENT "${WEIR_TEST_ENVIRONMENT}")
endfunction()
