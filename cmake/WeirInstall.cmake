# Installs headers, one archive per layer, find_package(weir) and pkg-config.
#   find_package(weir REQUIRED)                      weir::weir, or single layers: weir::control
#   find_package(weir REQUIRED COMPONENTS control)   looks only for what that layer links
#   find_package(weir REQUIRED COMPONENTS core)      weir::core: base, policy, control, embed
#   find_package(weir REQUIRED COMPONENTS grpc)      an optional layer: it is in no weir::weir
#   pkg-config --static --libs weir
# The layers server, client and grpc are components as they are: they bring all they need.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(WEIR_CORE_LAYERS base policy control embed)

function(weir_install_package)
  get_property(layers GLOBAL PROPERTY WEIR_LAYERS)
  get_property(optional_layers GLOBAL PROPERTY WEIR_OPTIONAL_LAYERS)
  set(all_layers ${layers} ${optional_layers})
  set(targets ${layers})
  list(TRANSFORM targets PREPEND weir_)

  add_library(weir_all INTERFACE)
  add_library(weir::weir ALIAS weir_all)
  set_target_properties(weir_all PROPERTIES EXPORT_NAME weir)
  target_link_libraries(weir_all INTERFACE ${targets})

  add_library(weir_core INTERFACE)
  add_library(weir::core ALIAS weir_core)
  set_target_properties(weir_core PROPERTIES EXPORT_NAME core)
  list(TRANSFORM WEIR_CORE_LAYERS PREPEND weir_ OUTPUT_VARIABLE core_targets)
  target_link_libraries(weir_core INTERFACE ${core_targets})

  set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/weir)
  list(TRANSFORM optional_layers PREPEND weir_ OUTPUT_VARIABLE optional_targets)
  install(TARGETS ${targets} ${optional_targets} weir_core weir_all EXPORT weirTargets
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
  set(left_out "")
  if(NOT WEIR_HAS_GRPC)
    set(left_out PATTERN "grpc" EXCLUDE)
  endif()
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/weir DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
          COMPONENT dev FILES_MATCHING PATTERN "*.h" ${left_out})
  install(EXPORT weirTargets NAMESPACE weir:: DESTINATION ${config_dir} COMPONENT dev)

  weir_write_config("${layers}" "${all_layers}" ${config_dir})
  weir_write_pkgconfig("${layers}")
endfunction()

# weirConfig.cmake: per layer, which layers it stands on and how to find what it links. Without
# COMPONENTS, `layers` are looked for; of `all_layers`, those that are named.
function(weir_write_config layers all_layers config_dir)
  set(WEIR_LAYER_FACTS "")
  foreach(layer IN LISTS all_layers)
    get_target_property(links weir_${layer} INTERFACE_LINK_LIBRARIES)
    string(REGEX MATCHALL "weir_[a-z]+" below "${links}")
    list(FILTER below EXCLUDE REGEX "^weir_compile$")
    list(TRANSFORM below REPLACE "^weir_" "")
    get_property(keys GLOBAL PROPERTY WEIR_PACKAGES_weir_${layer})
    set(finds "")
    foreach(key IN LISTS keys)
      string(APPEND finds "  ${WEIR_FIND_${key}}\n")
    endforeach()
    string(REPLACE ";" " " below "${below}")
    string(APPEND WEIR_LAYER_FACTS
      "set(_weir_${layer}_needs ${below})\nmacro(_weir_${layer}_find)\n${finds}endmacro()\n")
  endforeach()
  string(REPLACE ";" " " core "${WEIR_CORE_LAYERS}")
  string(APPEND WEIR_LAYER_FACTS
    "set(_weir_core_needs ${core})\nmacro(_weir_core_find)\nendmacro()\n")
  string(REPLACE ";" " " WEIR_LAYER_NAMES "${layers}")
  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/weirConfig.cmake.in
    ${CMAKE_CURRENT_BINARY_DIR}/weirConfig.cmake INSTALL_DESTINATION ${config_dir})
  write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/weirConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/weirConfig.cmake
                ${CMAKE_CURRENT_BINARY_DIR}/weirConfigVersion.cmake
          DESTINATION ${config_dir} COMPONENT dev)
endfunction()

# weir.pc: archives in link order (a layer before those it stands on), their libraries private.
function(weir_write_pkgconfig layers)
  set(WEIR_PC_LIBS "")
  set(requires "")
  list(REVERSE layers)
  foreach(layer IN LISTS layers)
    get_target_property(type weir_${layer} TYPE)
    if(type STREQUAL "STATIC_LIBRARY")
      string(APPEND WEIR_PC_LIBS " -lweir_${layer}")
    endif()
    get_property(keys GLOBAL PROPERTY WEIR_PACKAGES_weir_${layer})
    foreach(key IN LISTS keys)
      list(APPEND requires ${WEIR_PC_${key}})
    endforeach()
  endforeach()
  list(REMOVE_DUPLICATES requires)
  string(REPLACE ";" ", " WEIR_PC_REQUIRES "${requires}")
  # Relative to the .pc file: the installed tree may be moved.
  file(RELATIVE_PATH WEIR_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/weir.pc.in ${CMAKE_CURRENT_BINARY_DIR}/weir.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/weir.pc
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
endfunction()
