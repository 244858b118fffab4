# Installs headers, libraries, find_package(weir) and pkg-config files.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

function(weir_install_package)
  get_property(layers GLOBAL PROPERTY WEIR_LAYERS)
  install(TARGETS ${layers} EXPORT weirTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/weir DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT weirTargets NAMESPACE weir:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/weir)
  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/weirConfig.cmake.in
    ${CMAKE_CURRENT_BINARY_DIR}/weirConfig.cmake
    INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/weir)
  write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/weirConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/weir.pc.in ${CMAKE_CURRENT_BINARY_DIR}/weir.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/weirConfig.cmake
                ${CMAKE_CURRENT_BINARY_DIR}/weirConfigVersion.cmake
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/weir)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/weir.pc
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()
