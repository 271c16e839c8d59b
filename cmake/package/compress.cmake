# Debian's manual pages and changelogs are compressed. Run by CPack, between installing and packing.

file(GLOB_RECURSE files
    ${CPACK_TEMPORARY_DIRECTORY}/*/usr/share/man/*.[0-9]
    ${CPACK_TEMPORARY_DIRECTORY}/*/usr/share/doc/*/changelog
    ${CPACK_TEMPORARY_DIRECTORY}/*/usr/share/doc/*/changelog.Debian)
foreach(file ${files})
    execute_process(COMMAND gzip -9nf ${file} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
