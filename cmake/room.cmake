# What starts programs and talks to people is not worth optimising: it compiles in half the time so.
function(pscloud_compile_quickly NAME)
  if(PSCLOUD_SANITIZE)
    target_compile_options(${NAME} PRIVATE -O0)
  else()
    target_compile_options(${NAME} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
endfunction()

# pscloud_room(NAME SOURCES a.cc ... [TESTS a_test.cc ...] [LIBRARIES ...] [SHARDS n])
# One library pscloud_NAME and, from the tests beside the code, one program NAME_test. Rooms include each other as
# "room/file.h"; tests/tidy.py checks which room may include which.
function(pscloud_room NAME)
  cmake_parse_arguments(ROOM "" "SHARDS" "SOURCES;TESTS;LIBRARIES" ${ARGN})
  add_library(pscloud_${NAME} STATIC ${ROOM_SOURCES})
  # A few sources share the headers: a build from nothing takes half the time, that after an edit still seconds. Sources
  # with options of their own are left out by CMake.
  if(NOT CMAKE_UNITY_BUILD)
    set_target_properties(pscloud_${NAME} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 5)
  endif()
  target_include_directories(pscloud_${NAME} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:include>)
  target_link_libraries(pscloud_${NAME} PUBLIC ${ROOM_LIBRARIES} fmt::fmt tl::expected Threads::Threads)
  if(ROOM_TESTS)
    pscloud_test(${NAME}_test SOURCES ${ROOM_TESTS} LIBRARIES pscloud_${NAME} SHARDS ${ROOM_SHARDS})
  endif()
endfunction()

# pscloud_test(NAME SOURCES ... [LIBRARIES ...] [LABEL unit] [TIMEOUT 300] [SHARDS 1]): a GoogleTest program. An entry
# of ctest for each case would cost a process start each: one entry a program keeps `ctest` quick and its output short.
# A long one runs as SHARDS entries, beside each other.
function(pscloud_test NAME)
  cmake_parse_arguments(TEST "" "LABEL;TIMEOUT;SHARDS" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${NAME} ${TEST_SOURCES})
  target_link_libraries(${NAME} PRIVATE ${TEST_LIBRARIES} GTest::gmock GTest::gtest GTest::gtest_main)
  target_precompile_headers(${NAME} PRIVATE <gmock/gmock.h> <gtest/gtest.h>)
  # Most of the time goes into the headers of GoogleTest and of what is tested: eight sources share them.
  set_target_properties(${NAME} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  pscloud_compile_quickly(${NAME})
  if(NOT TEST_LABEL)
    set(TEST_LABEL unit)
  endif()
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 300)
  endif()
  if(NOT TEST_SHARDS)
    set(TEST_SHARDS 1)
  endif()
  foreach(shard RANGE 1 ${TEST_SHARDS})
    set(entry ${NAME})
    if(shard GREATER 1)
      set(entry ${NAME}_${shard})
    endif()
    math(EXPR index "${shard} - 1")
    add_test(NAME ${entry} COMMAND ${NAME} --gtest_brief=1)
    set_tests_properties(${entry} PROPERTIES LABELS ${TEST_LABEL} TIMEOUT ${TEST_TIMEOUT}
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${TEST_SHARDS};GTEST_SHARD_INDEX=${index}")
    # What is one thread has nothing to race, and these are long.
    if(PSCLOUD_SANITIZE STREQUAL "thread")
      set_property(TEST ${entry} APPEND PROPERTY ENVIRONMENT
        "GTEST_FILTER=-ClusterSim.*:Filter.*:JobBoardTest.*:SparseIndexTest.*:SparseTable.*")
    endif()
  endforeach()
endfunction()

# pscloud_knows_sources(FILE...): tests that read files of this clone, at PSCLOUD_SOURCE_DIR. Only these are compiled
# anew in another one (CMakeLists.txt: ccache).
function(pscloud_knows_sources)
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_DEFINITIONS PSCLOUD_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
endfunction()

# pscloud_fuzzer(NAME SOURCES ... [LIBRARIES ...]): sources with LLVMFuzzerTestOneInput. In the fuzz preset a libFuzzer
# program (`make fuzz`); in the others a test that replays the files of tests/fuzz/corpus/NAME, old findings too.
function(pscloud_fuzzer NAME)
  cmake_parse_arguments(FUZZER "" "" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${NAME} ${FUZZER_SOURCES})
  target_link_libraries(${NAME} PRIVATE ${FUZZER_LIBRARIES})
  if(PSCLOUD_FUZZ)
    target_link_options(${NAME} PRIVATE -fsanitize=fuzzer)
    set_target_properties(${NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzzers)
    add_dependencies(fuzzers ${NAME})
  else()
    target_sources(${NAME} PRIVATE ${PROJECT_SOURCE_DIR}/tests/fuzz/replay.cc)
    set_target_properties(${NAME} PROPERTIES UNITY_BUILD OFF)  # replay.cc knows the function as a stranger
    add_test(NAME ${NAME} COMMAND ${NAME} ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${NAME})
    set_tests_properties(${NAME} PROPERTIES LABELS fuzz TIMEOUT 120)
  endif()
endfunction()
