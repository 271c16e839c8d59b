# One library per folder of src/, linked only to the folders below it: the include table of
# docs/ARCHITECTURE.md, as the linker sees it. A folder without sources yet is skipped.

# A build without a part leaves out the files that include its headers, and the tests of these files.
# Where NAME.c is left out and there is a NAME_none.c, that takes its place and answers that the part
# is not there; the same goes for tests.
set(bay_absent)
if(NOT BAY_TLS)
    list(APPEND bay_absent "<openssl/" "\"auth/jose_primitive\\.h\"" "\"net/tls_session\\.h\"")
endif()
if(NOT BAY_HTTP2)
    list(APPEND bay_absent "<nghttp2/" "\"http/http2\\.h\"")
endif()
if(NOT BAY_SQLITE)
    list(APPEND bay_absent "<sqlite3\\.h>" "\"store/sqlite_file\\.h\"")
endif()
if(NOT BAY_PATTERNS)
    list(APPEND bay_absent "<pcre2\\.h>" "\"schema/pcre\\.h\"")
endif()
include(CheckSymbolExists)
check_symbol_exists(malloc_trim "malloc.h" BAY_HAS_MALLOC_TRIM)
if(NOT BAY_HAS_MALLOC_TRIM)
    list(APPEND bay_absent "<malloc\\.h>")
endif()
string(REPLACE ";" "|" bay_absent "${bay_absent}")

function(bay_is_absent file out)
    set(${out} FALSE PARENT_SCOPE)
    set(subjects ${file})
    string(REGEX REPLACE "/tests/unit/([a-z0-9_]+)/test_" "/src/\\1/" tested ${file})
    set(lines)
    if(EXISTS ${file})
        file(STRINGS ${file} lines REGEX "BAY_NO_(TLS|HTTP2|SQLITE|PATTERNS)" LIMIT_COUNT 1)
    endif()
    if(NOT lines) # a test that says what it expects of such a build stays
        list(APPEND subjects ${tested})
    endif()
    foreach(subject ${subjects})
        if(bay_absent AND EXISTS ${subject})
            file(STRINGS ${subject} lines REGEX "^#include (${bay_absent})" LIMIT_COUNT 1)
            if(lines)
                set(${out} TRUE PARENT_SCOPE)
            endif()
        endif()
    endforeach()
endfunction()

function(bay_leave_out list_name)
    set(kept)
    foreach(file ${${list_name}})
        string(REGEX REPLACE "_none\\.c$" ".c" replaced ${file})
        bay_is_absent(${replaced} is_absent)
        if(replaced STREQUAL file)
            set(is_substitute FALSE)
        else()
            set(is_substitute TRUE)
        endif()
        if((is_absent AND is_substitute) OR (NOT is_absent AND NOT is_substitute))
            list(APPEND kept ${file})
        endif()
    endforeach()
    set(${list_name} ${kept} PARENT_SCOPE)
endfunction()

# What a request passes is compiled for speed in release builds; all else, which runs at the start, once
# per tool or rarely and is two thirds of the code, for size. Names are beginnings.
set(bay_hot
    base/ json/ rpc/ policy/ agents/ upstream/ catalog/ sessions/ endpoint/ tasks/ gateway/worker\\. wire/base64 wire/chars wire/grpc_frame wire/header wire/http1 wire/sse
    net/fd_stream http/ net/line_ net/loop net/socket\\. net/socket_tls net/stream_queue net/timer net/tls\\.
    auth/digest\\. auth/dpop auth/failure_limit auth/principal\\. auth/token_memory
    oauth/credentials oauth/guard_link oauth/settle
    schema/check schema/format\\. schema/format_time schema/pattern_match
    mcp/ a2a/ front/ mcp_transport/ a2a_transport/ net/process
    sdk/agent_artifact sdk/agent_move sdk/agent_security sdk/agent_task sdk/message
    sdk/arguments sdk/call sdk/deadline sdk/delivery sdk/result sdk/server_service)
list(JOIN bay_hot "|" bay_hot)
# Of these, what connections, sessions and cards pass once.
set(bay_cold a2a/agent_list a2a/agent_push a2a/dialect_0_1 a2a/dialect_0_3_proto a2a/dialect_card a2a/push a2a/security\\. front/listen_address
    mcp/client_detect mcp/listen mcp/session_keep mcp_transport/link_sse_2024)
list(JOIN bay_cold "|" bay_cold)
# What every byte of every message passes: inlined with its constants, -O3.
set(bay_hottest a2a/normalise a2a/types base/buf base/str json/reader json/scan json/tree
    json/utf8 rpc/ mcp/request
    mcp/server_modern schema/check schema/pattern_match wire/chars wire/http1_head)
list(JOIN bay_hottest "|" bay_hottest)

function(bay_module name)
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.c)
    list(FILTER sources EXCLUDE REGEX "/cli/main\\.c$") # the binary's own
    bay_leave_out(sources)
    if(NOT sources)
        add_library(module_${name} INTERFACE)
        target_link_libraries(module_${name} INTERFACE ${ARGN})
        return()
    endif()
    add_library(module_${name} STATIC ${sources})
    if(CMAKE_BUILD_TYPE STREQUAL "Release")
        set(hottest ${sources})
        list(FILTER hottest INCLUDE REGEX "/src/(${bay_hottest})")
        set_source_files_properties(${hottest} PROPERTIES COMPILE_OPTIONS -O3)
        set(cold ${sources})
        list(FILTER cold INCLUDE REGEX "/src/(${bay_cold})")
        list(FILTER sources EXCLUDE REGEX "/src/(${bay_hot})")
        list(APPEND sources ${cold})
        set_source_files_properties(${sources} PROPERTIES COMPILE_OPTIONS -Os)
    endif()
    target_include_directories(module_${name} PUBLIC ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src)
    target_link_libraries(module_${name} PUBLIC ${ARGN})
endfunction()

bay_module(base)
bay_module(json module_base)
bay_module(wire module_base)
bay_module(net module_base module_wire PkgConfig::UV ${bay_tls_links} Threads::Threads)
bay_module(http module_base module_wire module_net ${bay_http2_links})
bay_module(schema module_base module_json ${bay_pattern_links})
bay_module(rpc module_base module_json)
bay_module(store module_base module_net ${bay_sqlite_links})
bay_module(auth module_base module_json module_wire ${bay_tls_links})
bay_module(policy module_base module_json module_wire module_net module_schema module_store module_auth Threads::Threads)
bay_module(trust module_base module_json module_wire module_schema module_auth module_policy)
bay_module(call module_base module_auth module_policy Threads::Threads)
bay_module(front module_base module_json module_wire module_net module_http module_auth)
bay_module(oauth module_base module_json module_wire module_net module_http module_auth module_front)
bay_module(mcp module_base module_json module_wire module_rpc module_auth module_call)
bay_module(a2a module_base module_json module_wire module_rpc module_auth module_call)
bay_module(mcp_transport module_base module_wire module_net module_http module_front module_mcp)
bay_module(a2a_transport module_base module_json module_wire module_http module_front module_a2a)
bay_module(sdk module_base module_json module_wire module_net module_http module_schema module_store module_auth module_call module_oauth module_front module_mcp module_a2a module_mcp_transport module_a2a_transport)
bay_module(agents module_base module_json module_wire module_net module_http module_store module_auth module_call module_front module_mcp module_a2a module_mcp_transport module_a2a_transport module_sdk)
bay_module(config module_base module_json module_wire module_net module_auth module_policy module_oauth module_mcp module_a2a PkgConfig::YAML)
bay_module(upstream module_base module_wire module_net module_http module_auth module_call module_oauth module_mcp module_mcp_transport module_config)
bay_module(catalog module_base module_json module_wire module_net module_auth module_trust module_upstream)
bay_module(sessions module_base module_net module_rpc module_store module_auth module_mcp module_config)
bay_module(endpoint module_base module_json module_wire module_net module_rpc module_auth module_mcp module_catalog module_sessions)
bay_module(tasks module_base module_json module_net module_mcp module_upstream module_sessions module_endpoint)
bay_module(gateway module_base module_json module_wire module_net module_http module_rpc module_store module_auth module_policy module_trust module_call module_oauth module_front module_mcp_transport module_a2a_transport module_agents module_config module_upstream module_catalog module_sessions module_endpoint module_tasks)
bay_module(cli module_base module_json module_wire module_net module_http module_rpc module_store module_auth module_trust module_oauth module_mcp module_a2a module_mcp_transport module_config module_upstream module_sessions module_gateway)

# Links a program of one file to the modules that it includes, and through them to those below.
function(bay_link_modules target file)
    file(STRINGS ${file} lines REGEX "^#include \"[a-z0-9_]+/")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    set(modules)
    foreach(line ${lines})
        string(REGEX REPLACE "^#include \"([a-z0-9_]+)/.*" "\\1" module ${line})
        if(TARGET module_${module})
            list(APPEND modules module_${module})
        endif()
    endforeach()
    list(REMOVE_DUPLICATES modules)
    target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src)
    target_link_libraries(${target} PRIVATE ${modules})
endfunction()
