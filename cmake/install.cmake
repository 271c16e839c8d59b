# What `cmake --install` lays down, in three components that become the Debian packages libpatchbay0
# (library), libpatchbay-dev (development) and patchbay (program); see package.cmake.

include(CMakePackageConfigHelpers)

# ---- libraries and headers ------------------------------------------------------------------------
install(TARGETS patchbay_shared EXPORT PatchbayTargets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library
    NAMELINK_COMPONENT development
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${bay_archive} DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/patchbay DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
    COMPONENT development FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
if(TARGET patchbay)
    install(TARGETS patchbay RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
endif()

# ---- pkg-config -----------------------------------------------------------------------------------
# Debian's libuv.pc names a library that exists as a shared one only; libuv-static's is the archive.
set(bay_requires_list libuv)
pkg_check_modules(UV_STATIC QUIET libuv-static)
if(UV_STATIC_FOUND)
    set(bay_requires_list libuv-static)
endif()
if(BAY_TLS)
    list(APPEND bay_requires_list openssl)
endif()
if(BAY_HTTP2)
    list(APPEND bay_requires_list libnghttp2)
endif()
if(BAY_PATTERNS)
    list(APPEND bay_requires_list libpcre2-8)
endif()
if(BAY_SQLITE)
    list(APPEND bay_requires_list sqlite3)
endif()
list(JOIN bay_requires_list ", " bay_pc_requires)
list(JOIN bay_requires_list " " bay_requires_list)

# Relative to the file, so that the tree can be moved, unless its parts are told absolute places.
foreach(part LIBDIR INCLUDEDIR)
    string(TOLOWER ${part} name)
    if(IS_ABSOLUTE ${CMAKE_INSTALL_${part}})
        set(bay_pc_${name} ${CMAKE_INSTALL_${part}})
    else()
        set(bay_pc_${name} "\${prefix}/${CMAKE_INSTALL_${part}}")
    endif()
endforeach()
if(IS_ABSOLUTE ${CMAKE_INSTALL_LIBDIR})
    set(bay_pc_prefix ${CMAKE_INSTALL_PREFIX})
else()
    file(RELATIVE_PATH bay_pc_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
    string(REGEX REPLACE "/$" "" bay_pc_prefix "\${pcfiledir}/${bay_pc_prefix}")
endif()
# A program finds the library where pkg-config found it; in /usr it does without being told.
set(bay_pc_rpath "@bay_pc_rpath@")
configure_file(cmake/patchbay.pc.in patchbay.pc.in @ONLY)
install(CODE "
    set(bay_pc_rpath \" -Wl,-rpath,\\\${libdir}\")
    if(CMAKE_INSTALL_PREFIX STREQUAL \"/usr\")
        set(bay_pc_rpath \"\")
    endif()
    configure_file(\"${CMAKE_BINARY_DIR}/patchbay.pc.in\" \"${CMAKE_BINARY_DIR}/patchbay.pc\" @ONLY)"
    COMPONENT development)
install(FILES ${CMAKE_BINARY_DIR}/patchbay.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
    COMPONENT development)

# ---- CMake package --------------------------------------------------------------------------------
set(bay_cmake_folder ${CMAKE_INSTALL_LIBDIR}/cmake/Patchbay)
configure_package_config_file(cmake/PatchbayConfig.cmake.in PatchbayConfig.cmake
    INSTALL_DESTINATION ${bay_cmake_folder} PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(PatchbayConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/PatchbayConfig.cmake ${CMAKE_BINARY_DIR}/PatchbayConfigVersion.cmake
    DESTINATION ${bay_cmake_folder} COMPONENT development)
install(EXPORT PatchbayTargets NAMESPACE Patchbay:: DESTINATION ${bay_cmake_folder}
    COMPONENT development)

# ---- manual pages ---------------------------------------------------------------------------------
find_package(Python3 3.9 QUIET COMPONENTS Interpreter)
if(Python3_Interpreter_FOUND)
    file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/include/patchbay/*.h)
    set(bay_man ${CMAKE_BINARY_DIR}/man)
    add_custom_command(OUTPUT ${bay_man}/stamp
        COMMAND ${CMAKE_COMMAND} -E rm -rf ${bay_man}
        COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/tools/reference --man ${bay_man}
            ${PROJECT_VERSION}
        COMMAND ${CMAKE_COMMAND} -E touch ${bay_man}/stamp
        DEPENDS ${headers} ${CMAKE_SOURCE_DIR}/tools/reference ${CMAKE_SOURCE_DIR}/docs/cli.md
            ${CMAKE_SOURCE_DIR}/docs/config.md
        COMMENT "Writing the manual pages"
        VERBATIM)
    add_custom_target(patchbay_man ALL DEPENDS ${bay_man}/stamp)
    install(DIRECTORY ${bay_man}/man3 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT development)
    install(DIRECTORY ${bay_man}/man1 ${bay_man}/man5 DESTINATION ${CMAKE_INSTALL_MANDIR}
        COMPONENT program)
else()
    message(STATUS "no manual pages: Python 3.9 is not here")
endif()

# ---- documents ------------------------------------------------------------------------------------
if(BAY_PACKAGE)
    set(CMAKE_INSTALL_DOCDIR ${CMAKE_INSTALL_DATAROOTDIR}/doc/libpatchbay-dev)
endif()
# As they are in the source tree, so that their links lead somewhere.
install(FILES ${CMAKE_SOURCE_DIR}/README.md ${CMAKE_SOURCE_DIR}/CHANGELOG.md ${CMAKE_SOURCE_DIR}/CONTRIBUTING.md
    ${CMAKE_SOURCE_DIR}/SECURITY.md ${CMAKE_SOURCE_DIR}/LICENSE
    DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT development)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/docs ${CMAKE_SOURCE_DIR}/examples
    DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT development)
if(BAY_PACKAGE)
    include(cmake/package.cmake)
endif()
