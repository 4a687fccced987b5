# The man pages, made from the programs' --help. `cmake --build BUILD --target man` writes them to BUILD/man, and
# `cmake --install BUILD` installs them if they are there, beside the programs and the completion for bash.
set(FOMOE_PROGRAMS fomoe)
foreach(PROGRAM fomoe-wan fomoe-train)
  if(TARGET ${PROGRAM})
    list(APPEND FOMOE_PROGRAMS ${PROGRAM})
  endif()
endforeach()
list(TRANSFORM FOMOE_PROGRAMS REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE FOMOE_PROGRAM_FILES)
add_custom_target(man
  COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/man_pages.py --version ${PROJECT_VERSION} --output ${CMAKE_BINARY_DIR}/man ${FOMOE_PROGRAM_FILES}
  COMMENT "Writing man pages to ${CMAKE_BINARY_DIR}/man" VERBATIM)
add_dependencies(man ${FOMOE_PROGRAMS})

foreach(PROGRAM ${FOMOE_PROGRAMS})
  if(PROGRAM STREQUAL fomoe-train)  # as it is, with the path of LibTorch, which stays where it is
    install(PROGRAMS $<TARGET_FILE:fomoe-train> DESTINATION bin)
  else()
    install(TARGETS ${PROGRAM} RUNTIME DESTINATION bin)
  endif()
endforeach()
install(DIRECTORY ${CMAKE_BINARY_DIR}/man/ DESTINATION share/man/man1 OPTIONAL FILES_MATCHING PATTERN "*.1")
install(FILES ${PROJECT_SOURCE_DIR}/tools/fomoe-completion.bash DESTINATION share/bash-completion/completions RENAME fomoe)
