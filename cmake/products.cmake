# What is built from the rooms: the library, the binary, the examples, the benchmarks.

set(bay_library_rooms base json wire net rpc mcp transport sdk)
