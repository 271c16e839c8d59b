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
    list(APPEND bay_absent "<nghttp2/" "\"net/http2\\.h\"")
endif()
if(NOT BAY_SQLITE)
    list(APPEND bay_absent "<sqlite3\\.h>" "\"store/sqlite_file\\.h\"")
endif()
if(NOT BAY_PATTERNS)
    list(APPEND bay_absent "<pcre2\\.h>" "\"schema/pcre\\.h\"")
endif()
string(REPLACE ";" "|" bay_absent "${bay_absent}")

function(bay_is_absent file out)
    set(${out} FALSE PARENT_SCOPE)
    set(subjects ${file})
    string(REGEX REPLACE "/tests/unit/([a-z0-9]+)/test_" "/src/\\1/" tested ${file})
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
    base/ json/ rpc/ agents/ upstream/ catalog/ sessions/ downstream/ tasks/ gateway/worker\\. wire/base64 wire/chars wire/grpc_frame wire/header wire/http1 wire/sse
    net/fd_stream net/http2 net/http_ net/line_ net/loop net/socket\\. net/socket_tls net/stream_queue net/timer net/tls\\.
    schema/check schema/format\\. schema/format_time schema/pattern_match
    mcp/ a2a/ transport/ net/process
    sdk/agent_artifact sdk/agent_move sdk/agent_security sdk/agent_task sdk/message
    sdk/arguments sdk/call sdk/deadline sdk/delivery sdk/result sdk/server_service)
list(JOIN bay_hot "|" bay_hot)
# What every byte of every message passes: inlined with its constants, -O3.
set(bay_hottest a2a/normalise a2a/types base/buf base/str json/reader json/scan json/tree
    json/utf8 rpc/ mcp/request
    mcp/server_modern schema/check schema/pattern_match wire/chars wire/http1_head)
list(JOIN bay_hottest "|" bay_hottest)

function(bay_room name)
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.c)
    list(FILTER sources EXCLUDE REGEX "/cli/main\\.c$") # the binary's own
    bay_leave_out(sources)
    if(NOT sources)
        add_library(room_${name} INTERFACE)
        target_link_libraries(room_${name} INTERFACE ${ARGN})
        return()
    endif()
    add_library(room_${name} STATIC ${sources})
    if(CMAKE_BUILD_TYPE STREQUAL "Release")
        set(hottest ${sources})
        list(FILTER hottest INCLUDE REGEX "/src/(${bay_hottest})")
        set_source_files_properties(${hottest} PROPERTIES COMPILE_OPTIONS -O3)
        list(FILTER sources EXCLUDE REGEX "/src/(${bay_hot})")
        set_source_files_properties(${sources} PROPERTIES COMPILE_OPTIONS -Os)
    endif()
    target_include_directories(room_${name} PUBLIC ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src)
    target_link_libraries(room_${name} PUBLIC ${ARGN})
endfunction()

bay_room(base)
bay_room(json room_base)
bay_room(wire room_base)
bay_room(net room_base room_wire PkgConfig::UV ${bay_tls_links} ${bay_http2_links} Threads::Threads)
bay_room(schema room_base room_json ${bay_pattern_links})
bay_room(rpc room_base room_json)
bay_room(store room_base room_json room_net ${bay_sqlite_links})
bay_room(auth room_base room_json room_net ${bay_tls_links})
bay_room(mcp room_base room_json room_wire room_schema room_rpc)
bay_room(a2a room_base room_json room_wire room_rpc)
bay_room(transport room_mcp room_a2a room_net room_wire room_rpc room_json room_base)
bay_room(sdk room_transport room_schema room_store room_auth)
bay_room(agents room_sdk room_transport)
bay_room(config room_mcp room_auth room_net PkgConfig::YAML)
bay_room(upstream room_config room_transport)
bay_room(catalog room_upstream)
bay_room(sessions room_config room_store)
bay_room(downstream room_catalog room_sessions)
bay_room(tasks room_downstream)
bay_room(gateway room_tasks room_agents)
bay_room(cli room_gateway room_sdk)

# Links a program of one file to the rooms that it includes, and through them to those below.
function(bay_link_rooms target file)
    file(STRINGS ${file} lines REGEX "^#include \"[a-z0-9]+/")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    set(rooms)
    foreach(line ${lines})
        string(REGEX REPLACE "^#include \"([a-z0-9]+)/.*" "\\1" room ${line})
        if(TARGET room_${room})
            list(APPEND rooms room_${room})
        endif()
    endforeach()
    list(REMOVE_DUPLICATES rooms)
    target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src)
    target_link_libraries(${target} PRIVATE ${rooms})
endfunction()
