# What is built from the modules: the library, the binary, the examples, the benchmarks.
# A product whose sources are not there is left out.

include(GNUInstallDirs)

set(bay_library_modules base json wire net http schema rpc store auth oauth call front mcp a2a mcp_transport a2a_transport sdk)
set(bay_library_objects)
foreach(module ${bay_library_modules})
    get_target_property(kind module_${module} TYPE)
    if(kind STREQUAL "STATIC_LIBRARY")
        list(APPEND bay_library_objects $<TARGET_OBJECTS:module_${module}>)
    endif()
endforeach()
set(bay_library_links PkgConfig::UV ${bay_tls_links} ${bay_http2_links}
    ${bay_pattern_links} ${bay_sqlite_links} Threads::Threads)

# libpatchbay.so: hidden visibility leaves only BAY_API to its users, the map gives each a version.
set(bay_map ${CMAKE_SOURCE_DIR}/cmake/patchbay.map)
add_library(patchbay_shared SHARED ${bay_library_objects})
set_target_properties(patchbay_shared PROPERTIES OUTPUT_NAME patchbay LINKER_LANGUAGE C
    VERSION ${PROJECT_VERSION} SOVERSION 0 EXPORT_NAME patchbay LINK_DEPENDS ${bay_map})
target_include_directories(patchbay_shared INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>)
target_link_options(patchbay_shared PRIVATE LINKER:--version-script=${bay_map})
target_link_libraries(patchbay_shared PRIVATE ${bay_library_links})
if(NOT BAY_SANITIZE AND NOT BAY_FUZZ)
    target_link_options(patchbay_shared PRIVATE LINKER:-z,defs)
endif()

# libpatchbay.a: one object in which everything but BAY_API has become local, so that an embedder's
# names never meet ours.
set(bay_archive ${CMAKE_BINARY_DIR}/libpatchbay.a)
set(bay_object ${CMAKE_BINARY_DIR}/patchbay.o)
add_custom_command(OUTPUT ${bay_archive}
    COMMAND ${bay_partial_link} -o ${bay_object} ${bay_library_objects}
    COMMAND ${CMAKE_OBJCOPY} --localize-hidden ${bay_object}
    COMMAND ${CMAKE_COMMAND} -E rm -f ${bay_archive}
    COMMAND ${CMAKE_AR} rcsD ${bay_archive} ${bay_object}
    DEPENDS ${bay_library_objects}
    COMMENT "Linking libpatchbay.a"
    COMMAND_EXPAND_LISTS VERBATIM)
add_custom_target(patchbay_archive ALL DEPENDS ${bay_archive})
add_library(patchbay_static INTERFACE)
add_dependencies(patchbay_static patchbay_archive)
target_include_directories(patchbay_static INTERFACE ${CMAKE_SOURCE_DIR}/include)
target_link_libraries(patchbay_static INTERFACE ${bay_archive} ${bay_library_links})

set(bay_programs) # what scenarios start
if(EXISTS ${CMAKE_SOURCE_DIR}/src/cli/main.c)
    add_executable(patchbay ${CMAKE_SOURCE_DIR}/src/cli/main.c)
    target_link_libraries(patchbay PRIVATE module_cli)
    list(APPEND bay_programs patchbay)
endif()

# examples/NAME.c: one program each, on the public headers and the static library. One that is about a
# library which is not here is left out.
file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/examples/*.c)
foreach(file ${files})
    get_filename_component(name ${file} NAME_WE)
    file(STRINGS ${file} lines REGEX "^#include <(openssl/|sqlite3\\.h|uv\\.h|glib)")
    set(links)
    foreach(pair "openssl/=OPENSSL" "sqlite3=SQLITE" "uv=UV" "glib=GLIB")
        string(REGEX REPLACE "=.*" "" header ${pair})
        string(REGEX REPLACE ".*=" "" package ${pair})
        if("${lines}" MATCHES "<${header}")
            list(APPEND links ${package})
        endif()
    endforeach()
    set(is_possible TRUE)
    foreach(package ${links})
        if(NOT TARGET PkgConfig::${package})
            set(is_possible FALSE)
        endif()
    endforeach()
    if(NOT is_possible)
        message(STATUS "examples/${name}.c is left out: its library is not here")
        continue()
    endif()
    list(TRANSFORM links PREPEND PkgConfig::)
    add_executable(example_${name} ${file})
    set_target_properties(example_${name} PROPERTIES OUTPUT_NAME ${name}
        RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/examples)
    set_property(TARGET example_${name} APPEND PROPERTY LINK_DEPENDS ${bay_archive})
    target_link_libraries(example_${name} PRIVATE patchbay_static ${links})
    list(APPEND bay_programs example_${name})
endforeach()

# The program of docs/compare.md in C. Its C++ twin and the test of the C++ headers are compiled by hand:
# the build is one of C, and nothing else in it needs a C++ compiler.
if(EXISTS ${CMAKE_SOURCE_DIR}/examples/compare/weather.c AND BAY_TESTS)
    add_executable(compare_weather ${CMAKE_SOURCE_DIR}/examples/compare/weather.c)
    set_property(TARGET compare_weather APPEND PROPERTY LINK_DEPENDS ${bay_archive})
    target_link_libraries(compare_weather PRIVATE patchbay_static)
endif()

# The server and the client that tests/conformance holds against the official suite.
foreach(role server client)
    set(bay_conformance ${CMAKE_SOURCE_DIR}/tests/conformance/${role}.c)
    if(EXISTS ${bay_conformance})
        add_executable(conformance_${role} ${bay_conformance})
        set_property(TARGET conformance_${role} APPEND PROPERTY LINK_DEPENDS ${bay_archive})
        target_link_libraries(conformance_${role} PRIVATE patchbay_static)
        if(NOT BAY_TESTS)
            set_target_properties(conformance_${role} PROPERTIES EXCLUDE_FROM_ALL ON)
        endif()
    endif()
endforeach()

# Programs of tests/interop, built on demand: our client for servers on other SDKs, and the server and
# the client of the matrix of eras.
foreach(pair sdk_client=sdks/sdk_client eras_fixture=eras/fixture eras_player=eras/player
        interop_agent=a2a/interop_agent interop_caller=a2a/interop_caller)
    string(REGEX REPLACE "=.*" "" name ${pair})
    string(REGEX REPLACE ".*=" "" file ${pair})
    if(EXISTS ${CMAKE_SOURCE_DIR}/tests/interop/${file}.c)
        add_executable(${name} EXCLUDE_FROM_ALL tests/interop/${file}.c)
        set_property(TARGET ${name} APPEND PROPERTY LINK_DEPENDS ${bay_archive})
        target_link_libraries(${name} PRIVATE patchbay_static)
    endif()
endforeach()

# What the interoperability suite signs and verifies agents' cards with.
if(BAY_TLS)
    add_executable(card_tool EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/tests/interop/a2a/card_tool.c)
    bay_link_modules(card_tool ${CMAKE_SOURCE_DIR}/tests/interop/a2a/card_tool.c)
endif()

# bench/NAME.c: built on demand (target "benches"), free to use every module.
add_custom_target(benches)
file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/bench/*.c)
bay_leave_out(files)
foreach(file ${files})
    get_filename_component(name ${file} NAME_WE)
    add_executable(bench_${name} EXCLUDE_FROM_ALL ${file})
    file(STRINGS ${file} public REGEX "#include <patchbay/")
    if(public) # as any embedder's program
        set_property(TARGET bench_${name} APPEND PROPERTY LINK_DEPENDS ${bay_archive})
        target_link_libraries(bench_${name} PRIVATE patchbay_static)
    else()
        bay_link_modules(bench_${name} ${file})
    endif()
    add_dependencies(benches bench_${name})
endforeach()

# tests/chaos/NAME.c: the servers and clients of chaos runs and of some benchmarks; plain C, no modules.
set(bay_chaos)
foreach(name fleet crowd clients)
    set(files ${CMAKE_SOURCE_DIR}/tests/chaos/${name}.c)
    if(NOT EXISTS ${files})
        continue()
    endif()
    list(APPEND files ${CMAKE_SOURCE_DIR}/tests/chaos/talk.c)
    add_executable(chaos_${name} EXCLUDE_FROM_ALL ${files})
    list(APPEND bay_chaos chaos_${name})
    add_dependencies(benches chaos_${name})
endforeach()

# What bench/peers compares with is linked whole, but for libc: so is ours, where the archives are.
set(bay_whole)
set(names "libuv_a.a libuv.a" libpcre2-8.a)
if(bay_sqlite_links)
    list(APPEND names libsqlite3.a)
endif()
if(bay_http2_links)
    list(APPEND names libnghttp2.a)
endif()
if(bay_tls_links)
    list(APPEND names libssl.a libcrypto.a)
endif()
foreach(name ${names})
    separate_arguments(name)
    list(GET name 0 first)
    find_library(BAY_ARCHIVE_${first} NAMES ${name})
    list(APPEND bay_whole ${BAY_ARCHIVE_${first}})
endforeach()
if(TARGET bench_peer_hello AND NOT "${bay_whole}" MATCHES "NOTFOUND" AND NOT BAY_SANITIZE AND NOT BAY_FUZZ)
    add_executable(bench_peer_hello_whole EXCLUDE_FROM_ALL bench/peer_hello.c)
    add_dependencies(bench_peer_hello_whole patchbay_archive)
    set_property(TARGET bench_peer_hello_whole APPEND PROPERTY LINK_DEPENDS ${bay_archive})
    target_include_directories(bench_peer_hello_whole PRIVATE ${CMAKE_SOURCE_DIR}/include)
    target_link_options(bench_peer_hello_whole PRIVATE -no-pie LINKER:--gc-sections)
    target_link_libraries(bench_peer_hello_whole PRIVATE ${bay_archive} ${bay_whole} -Wl,-Bstatic m
        -Wl,-Bdynamic Threads::Threads ${CMAKE_DL_LIBS})
    add_dependencies(benches bench_peer_hello_whole)
endif()
