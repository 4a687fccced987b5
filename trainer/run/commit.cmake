# Writes commit.hpp, which names the commit of the sources; with a hash of the changes since it, if there are
# any. The file is touched only if its content changes.
find_package(Git QUIET)
set(commit "no commit")
if(Git_FOUND)
  execute_process(COMMAND ${GIT_EXECUTABLE} rev-parse --short=10 HEAD WORKING_DIRECTORY ${SOURCE} OUTPUT_VARIABLE head
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed)
    set(commit "commit ${head}")
    execute_process(COMMAND ${GIT_EXECUTABLE} diff HEAD -- trainer costmodel experiments/scenario platforms
                    WORKING_DIRECTORY ${SOURCE} OUTPUT_VARIABLE changes ERROR_QUIET)
    if(changes)
      string(SHA1 changed "${changes}")
      string(SUBSTRING ${changed} 0 8 changed)
      string(APPEND commit " with changes ${changed}")
    endif()
  endif()
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#pragma once\n#define FOMOE_COMMIT \"@commit@\"\n" @ONLY)
