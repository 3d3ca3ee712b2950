# Language level, warnings and sanitizers, as one interface target that every folder links.
add_library(ingot_options INTERFACE)
target_compile_features(ingot_options INTERFACE cxx_std_23)
target_include_directories(ingot_options INTERFACE ${CMAKE_SOURCE_DIR})
# -ffp-contract=off: what the compiler computes must not depend on the host's FMA.
target_compile_options(ingot_options INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow -ffp-contract=off)
# g++ 12 reports overlapping copies inside std::string's own operator+ (its bug 105651).
target_compile_options(ingot_options INTERFACE
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
if(INGOT_WERROR)
  target_compile_options(ingot_options INTERFACE -Werror)
endif()
if(INGOT_SANITIZE)
  target_compile_options(ingot_options INTERFACE
    -fsanitize=${INGOT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(ingot_options INTERFACE -fsanitize=${INGOT_SANITIZE})
endif()
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_EXTENSIONS OFF)
