# Debian packages by CPack, one per component: `./dev package`.

set(bay_package_library libpatchbay0)
set(bay_package_development libpatchbay-dev)
set(bay_package_program patchbay)
string(TIMESTAMP bay_package_date "%a, %d %b %Y %H:%M:%S +0000" UTC) # SOURCE_DATE_EPOCH is honoured
foreach(component library development program)
    set(name ${bay_package_${component}})
    set(folder ${CMAKE_BINARY_DIR}/package/${name})
    configure_file(cmake/package/copyright.in ${folder}/copyright @ONLY)
    configure_file(cmake/package/changelog.in ${folder}/changelog.Debian @ONLY)
    configure_file(${CMAKE_SOURCE_DIR}/CHANGELOG.md ${folder}/changelog COPYONLY)
    install(DIRECTORY ${folder}/ DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/${name}
        COMPONENT ${component})
endforeach()

# What the archive and the pkg-config file need of others.
set(bay_needs libuv1-dev)
if(BAY_PATTERNS)
    list(APPEND bay_needs libpcre2-dev)
endif()
if(BAY_TLS)
    list(APPEND bay_needs libssl-dev)
endif()
if(BAY_HTTP2)
    list(APPEND bay_needs libnghttp2-dev)
endif()
if(BAY_SQLITE)
    list(APPEND bay_needs libsqlite3-dev)
endif()
list(JOIN bay_needs ", " bay_needs)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME patchbay)
set(CPACK_PACKAGE_CONTACT "The Patchbay maintainers <maintainers@patchbay.invalid>")
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL library development program)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_SOURCE_DIR}/cmake/package/compress.cmake)

set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libpatchbay0)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${CMAKE_SOURCE_DIR}/cmake/package/triggers)
set(CPACK_DEBIAN_LIBRARY_DESCRIPTION
"libpatchbay makes a program a server or a client of the Model Context
Protocol (MCP), of every revision since 2024-11-05, over standard input and
output, over HTTP and in process.")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libpatchbay-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
    "libpatchbay0 (= ${PROJECT_VERSION}-1), libc6-dev | libc-dev, ${bay_needs}")
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION
"Headers, static library, pkg-config and CMake files, manual pages and
examples of libpatchbay, the library for the Model Context Protocol (MCP).")

set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME patchbay)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PROGRAM_DESCRIPTION
"patchbay puts many servers of the Model Context Protocol (MCP) behind one
address, whatever revision of the protocol each side speaks, and lists,
calls, reads and watches servers from the shell.")

include(CPack)
