# Everything from outside, found once. Layers name the targets they use.
find_package(PkgConfig REQUIRED)
pkg_check_modules(LIBUV REQUIRED IMPORTED_TARGET libuv)
pkg_check_modules(NGHTTP2 REQUIRED IMPORTED_TARGET libnghttp2)
pkg_check_modules(CARES REQUIRED IMPORTED_TARGET libcares)
find_package(OpenSSL 3.0 REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(CLI11 REQUIRED)

# Installed headers include std and Weir only, so whoever links an installed layer needs of these
# the libraries, never the headers; packages that are headers only, it does not need at all.
# For each: how weirConfig.cmake finds it again, and its pkg-config name.
set(WEIR_FIND_PkgConfig_LIBUV "pkg_check_modules(LIBUV REQUIRED QUIET IMPORTED_TARGET libuv)")
set(WEIR_PC_PkgConfig_LIBUV libuv)
set(WEIR_FIND_PkgConfig_NGHTTP2
    "pkg_check_modules(NGHTTP2 REQUIRED QUIET IMPORTED_TARGET libnghttp2)")
set(WEIR_PC_PkgConfig_NGHTTP2 libnghttp2)
set(WEIR_FIND_PkgConfig_CARES "pkg_check_modules(CARES REQUIRED QUIET IMPORTED_TARGET libcares)")
set(WEIR_PC_PkgConfig_CARES libcares)
set(WEIR_FIND_OpenSSL_SSL "find_dependency(OpenSSL 3.0)")
set(WEIR_PC_OpenSSL_SSL libssl)
set(WEIR_FIND_OpenSSL_Crypto "find_dependency(OpenSSL 3.0)")
set(WEIR_PC_OpenSSL_Crypto libcrypto)
set(WEIR_FIND_fmt_fmt "find_dependency(fmt)")
set(WEIR_PC_fmt_fmt fmt)
set(WEIR_FIND_spdlog_spdlog "find_dependency(spdlog)")
set(WEIR_PC_spdlog_spdlog spdlog)
set(WEIR_HEADER_PACKAGES nlohmann_json::nlohmann_json tomlplusplus::tomlplusplus CLI11::CLI11
    fmt::fmt-header-only spdlog::spdlog_header_only)

# weir_use_packages(<target> <scope> package…): full use in our own build, only the link when
# installed, except packages whose headers our installed headers include (WEIR_PUBLIC_PACKAGES).
function(weir_use_packages target scope)
  foreach(package IN LISTS ARGN)
    string(REPLACE "::" "_" key ${package})
    if(package IN_LIST WEIR_PUBLIC_PACKAGES)
      target_link_libraries(${target} ${scope} ${package})
      set_property(GLOBAL APPEND PROPERTY WEIR_PACKAGES_${target} ${key})
    elseif(package IN_LIST WEIR_HEADER_PACKAGES)
      target_link_libraries(${target} ${scope} $<BUILD_INTERFACE:${package}>)
    elseif(DEFINED WEIR_FIND_${key})
      target_link_libraries(${target} ${scope}
        $<BUILD_INTERFACE:${package}> $<INSTALL_INTERFACE:$<LINK_ONLY:${package}>>)
      set_property(GLOBAL APPEND PROPERTY WEIR_PACKAGES_${target} ${key})
    else()
      message(FATAL_ERROR "${package}: WeirPackages.cmake does not say how to find it installed")
    endif()
  endforeach()
endfunction()
