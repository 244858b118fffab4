# One interface target carries what every Weir target is compiled with.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

# Paths below the source folder are hashed relative to it: a fresh clone finds what another
# compiled.
find_program(WEIR_CCACHE ccache)
if(WEIR_CCACHE)
  set(launcher env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${WEIR_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()

find_package(Threads REQUIRED)

add_library(weir_compile INTERFACE)
target_compile_options(weir_compile INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wnon-virtual-dtor
  -Wold-style-cast -Woverloaded-virtual -Wnull-dereference -Werror
  -fno-omit-frame-pointer)
target_link_libraries(weir_compile INTERFACE Threads::Threads)

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 reports these two inside inlined libstdc++ code, where nothing is wrong.
  target_compile_options(weir_compile INTERFACE -Wno-null-dereference -Wno-restrict)
endif()

# Several sources at once take half the time of one by one: CMAKE_UNITY_BUILD, which the sanitizer
# presets set. Release compiles all but tests alone, with -Wshadow, which would see a local of one
# file hide a private name of another. tools/tidy_rules/private_names.py keeps such names apart.
if(CMAKE_UNITY_BUILD)
  target_compile_options(weir_compile INTERFACE -Wno-shadow)
endif()

# weir_unity(<target>): even pieces of at most ten sources.
function(weir_unity target)
  get_target_property(sources ${target} SOURCES)
  list(LENGTH sources count)
  math(EXPR pieces "(${count} + 9) / 10")
  math(EXPR size "(${count} + ${pieces} - 1) / ${pieces}")
  set_target_properties(${target} PROPERTIES UNITY_BUILD_BATCH_SIZE ${size})
endfunction()

if(WEIR_SANITIZE)
  add_compile_options(-fsanitize=${WEIR_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${WEIR_SANITIZE})
endif()
if(WEIR_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
  add_link_options(-fsanitize=fuzzer-no-link)
endif()
if(WEIR_COVERAGE)
  # Atomic: tests count from several threads at once.
  add_compile_options(--coverage -fprofile-abs-path -fprofile-update=atomic)
  add_link_options(--coverage)
endif()
