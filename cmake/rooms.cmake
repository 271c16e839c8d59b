# One library per folder of src/, linked only to the folders below it: the include table of
# docs/ARCHITECTURE.md, as the linker sees it. A folder without sources yet is skipped.

function(bay_room name)
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.c)
    list(FILTER sources EXCLUDE REGEX "/cli/main\\.c$") # the binary's own
    if(NOT sources)
        add_library(room_${name} INTERFACE)
        target_link_libraries(room_${name} INTERFACE ${ARGN})
        return()
    endif()
    add_library(room_${name} STATIC ${sources})
    target_include_directories(room_${name} PUBLIC ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src)
    target_link_libraries(room_${name} PUBLIC ${ARGN})
endfunction()

bay_room(base)
bay_room(json room_base)
bay_room(wire room_base)
bay_room(net room_base room_wire PkgConfig::UV PkgConfig::OPENSSL Threads::Threads)
bay_room(rpc room_base room_json)
bay_room(mcp room_base room_json room_wire room_rpc)
bay_room(transport room_mcp room_net room_wire room_rpc room_json room_base)
bay_room(sdk room_transport)
bay_room(gateway room_sdk room_transport PkgConfig::YAML)
bay_room(cli room_gateway room_sdk)
