# tests/unit/MODULE/test_*.c: one executable each, linked to its module and the modules below it.
# tests/contract and tests/scenario link everything. tests/fuzz/fuzz_*.c: with BAY_FUZZ.

include(CTest)

# The tests of the modules that run threads; what ThreadSanitizer is for.
add_custom_target(threaded_tests)
set(bay_threaded net http auth oauth call evidence front store mcp_transport a2a_transport sdk agents config upstream sessions gateway contract scenario)

# What the gateway's tests put behind it: a server that breaks the rules as it is told.
add_executable(bad_server ${CMAKE_SOURCE_DIR}/tests/support/bad_server.c)
target_link_libraries(bad_server PRIVATE Threads::Threads)
add_dependencies(threaded_tests bad_server)

# One whose lists change, lie or do not end.
add_executable(list_server ${CMAKE_SOURCE_DIR}/tests/support/list_server.c)
add_dependencies(threaded_tests list_server)

# What the tests of the sandbox put into it: a server that tries to get out, and needs little itself.
add_executable(escape_server ${CMAKE_SOURCE_DIR}/tests/support/escape_server.c
    ${CMAKE_SOURCE_DIR}/tests/support/escape_files.c ${CMAKE_SOURCE_DIR}/tests/support/escape_kernel.c)
target_compile_options(escape_server PRIVATE -fno-sanitize=all)
target_link_options(escape_server PRIVATE -fno-sanitize=all)
add_dependencies(threaded_tests escape_server)

# A child whose ends a test holds; started a thousand times, so without what sanitizers bring along.
add_executable(sweep_hand ${CMAKE_SOURCE_DIR}/tests/support/sweep_hand.c)
target_compile_options(sweep_hand PRIVATE -fno-sanitize=all)
target_link_options(sweep_hand PRIVATE -fno-sanitize=all)
add_dependencies(threaded_tests sweep_hand)

find_library(CMOCKA cmocka)
if(CMOCKA)
    function(bay_test file module)
        get_filename_component(name ${file} NAME_WE)
        string(REGEX REPLACE "^test_" "" short ${name})
        set(target test_${module}_${short})
        if(BAY_FUZZ) # what clang says of it; it runs in the other kinds, and to link all takes minutes
            add_library(${target} OBJECT ${file})
        else()
            add_executable(${target} ${file})
        endif()
        target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/include
            ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/tests)
        target_link_libraries(${target} PRIVATE ${ARGN} ${CMOCKA})
        target_compile_definitions(${target} PRIVATE
            BAY_TEST_BINARY_DIR="${CMAKE_BINARY_DIR}" BAY_TEST_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
        if(module IN_LIST bay_threaded)
            add_dependencies(threaded_tests ${target})
        endif()
        if(module MATCHES "^(upstream|gateway|scenario)$" OR target STREQUAL "test_sdk_client_stdio")
            add_dependencies(${target} bad_server list_server sweep_hand)
        endif()
        if(target MATCHES "^test_(sessions_persister|a2a_transport_router|front_front|front_forwarded)$") # over HTTP
            target_link_libraries(${target} PRIVATE module_mcp_transport module_a2a_transport)
        endif()
        if(target STREQUAL "test_contract_counts")
            target_link_options(${target} PRIVATE LINKER:--wrap=memcpy LINKER:--wrap=memmove LINKER:--wrap=json_parse)
        endif()
        if(target STREQUAL "test_net_tls_none") # what HTTP says without TLS
            target_link_libraries(${target} PRIVATE module_http)
        endif()
        if(target STREQUAL "test_scenario_client_examples" AND TARGET PkgConfig::GLIB)
            target_compile_definitions(${target} PRIVATE BAY_HAS_GLIB)
        endif()
        if(target STREQUAL "test_scenario_run_python")
            add_dependencies(${target} example_run_python)
        endif()
        if(target STREQUAL "test_sdk_any_argument") # a call of each function that the headers declare
            file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/include/patchbay/*.h)
            add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/generated/any_calls.h
                COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/generated
                COMMAND ${CMAKE_SOURCE_DIR}/tools/abi --calls ${CMAKE_BINARY_DIR}/generated/any_calls.h
                DEPENDS ${headers} ${CMAKE_SOURCE_DIR}/tools/abi
                VERBATIM)
            target_sources(${target} PRIVATE ${CMAKE_BINARY_DIR}/generated/any_calls.h)
            target_include_directories(${target} PRIVATE ${CMAKE_BINARY_DIR}/generated)
        endif()
        if(target MATCHES "_sandbox|_left_behind")
            add_dependencies(${target} escape_server)
        endif()
        if(target STREQUAL "test_sdk_main") # starts these
            add_dependencies(${target} example_weather example_embedded example_greeter conformance_server)
        endif()
        if(BAY_FUZZ)
            return()
        endif()
        add_test(NAME ${module}/${short} COMMAND ${target} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
        set(patience 120)
        if(short MATCHES "^(sweep_|chaos$)") # thousands of sessions, many seconds
            set(patience 400)
        endif()
        set_tests_properties(${module}/${short} PROPERTIES TIMEOUT ${patience})
    endfunction()

    foreach(module base json wire net http schema rpc store auth policy trust oauth call evidence front mcp a2a mcp_transport a2a_transport sdk agents config upstream catalog
            sessions endpoint tasks gateway cli)
        file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/unit/${module}/test_*.c)
        bay_leave_out(files)
        foreach(file ${files})
            bay_test(${file} ${module} module_${module})
        endforeach()
    endforeach()
    foreach(kind contract scenario)
        file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${kind}/test_*.c)
        bay_leave_out(files)
        foreach(file ${files})
            bay_test(${file} ${kind} module_cli module_gateway module_sdk)
        endforeach()
    endforeach()
    # Scenarios start the programs themselves.
    if(bay_programs)
        add_dependencies(threaded_tests ${bay_programs})
    endif()
    if(TARGET test_scenario_bench_load)
        add_dependencies(test_scenario_bench_load bench_load bench_stdio_load)
    endif()
    if(TARGET test_scenario_chaos AND TARGET patchbay)
        add_dependencies(test_scenario_chaos patchbay ${bay_chaos})
    endif()
endif()

add_test(NAME project/guide COMMAND ${CMAKE_SOURCE_DIR}/tools/check-guide ${CMAKE_SOURCE_DIR})
add_test(NAME project/limits COMMAND ${CMAKE_SOURCE_DIR}/tools/check-limits ${CMAKE_SOURCE_DIR})
add_test(NAME project/reference COMMAND ${CMAKE_SOURCE_DIR}/tools/reference --check)
add_test(NAME project/abi COMMAND ${CMAKE_SOURCE_DIR}/tests/abi/run $<TARGET_FILE:patchbay_shared>)
add_test(NAME project/symbols COMMAND ${CMAKE_SOURCE_DIR}/tools/check-symbols
    $<TARGET_FILE:patchbay_shared> ${bay_archive})

# patchbay.hpp, where there is a C++ compiler of the C compiler's family: with and without exceptions.
if(CMAKE_C_COMPILER_ID STREQUAL "Clang")
    find_program(BAY_CXX_CLANG clang++)
    set(bay_cxx ${BAY_CXX_CLANG})
else()
    find_program(BAY_CXX_GNU g++)
    set(bay_cxx ${BAY_CXX_GNU})
endif()
if(bay_cxx)
    set(bay_cxx_flags -std=c++17 -O1 -g -Wall -Wextra -Wshadow -Werror -pedantic -I${CMAKE_SOURCE_DIR}/include)
    if(BAY_SANITIZE)
        list(APPEND bay_cxx_flags -fsanitize=${BAY_SANITIZE})
    endif()
    file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/include/patchbay/*)
    function(bay_cpp_program name source)
        set(program ${CMAKE_BINARY_DIR}/${name})
        set(link -o ${program} $<TARGET_FILE:patchbay_shared> -Wl,-rpath,${CMAKE_BINARY_DIR})
        if(BAY_FUZZ) # what clang says of it; it runs in the other kinds
            set(link -fsyntax-only)
        endif()
        add_custom_command(OUTPUT ${program}.stamp
            COMMAND ${bay_cxx} ${bay_cxx_flags} -fno-exceptions -fno-rtti -fsyntax-only ${source}
            COMMAND ${bay_cxx} ${bay_cxx_flags} ${source} ${link}
            COMMAND ${CMAKE_COMMAND} -E touch ${program}.stamp
            DEPENDS ${source} ${headers} patchbay_shared
            COMMENT "Compiling ${name}"
            VERBATIM)
        add_custom_target(${name}_cpp ALL DEPENDS ${program}.stamp)
    endfunction()
    bay_cpp_program(test_cpp ${CMAKE_SOURCE_DIR}/tests/cpp/test_patchbay.cpp)
    bay_cpp_program(compare_weather_cpp ${CMAKE_SOURCE_DIR}/examples/compare/weather.cpp)
    if(NOT BAY_FUZZ)
        add_test(NAME project/cpp COMMAND ${CMAKE_BINARY_DIR}/test_cpp)
    endif()
endif()
if(NOT BAY_FUZZ)
    add_test(NAME project/injection COMMAND ${CMAKE_SOURCE_DIR}/tests/injection/run --build ${CMAKE_BINARY_DIR})
    add_test(NAME project/compare COMMAND ${CMAKE_SOURCE_DIR}/tests/compare/run --build ${CMAKE_BINARY_DIR})
endif()

if(BAY_FUZZ)
    add_custom_target(fuzzers)
    find_library(HTTP_PARSER http_parser) # the other reading of HTTP/1.1, to differ from
    file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/fuzz/fuzz_*.c)
    foreach(file ${files})
        get_filename_component(name ${file} NAME_WE)
        if(name STREQUAL "fuzz_http1_diff" AND NOT HTTP_PARSER)
            continue()
        endif()
        add_executable(${name} ${file})
        target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
        bay_link_modules(${name} ${file})
        if(HTTP_PARSER)
            target_link_libraries(${name} PRIVATE ${HTTP_PARSER})
        endif()
        target_link_options(${name} PRIVATE -fsanitize=fuzzer)
        add_dependencies(fuzzers ${name})
    endforeach()
endif()
