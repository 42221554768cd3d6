#pragma once

// PSCLOUD_VECTOR_CLONES before a function with a plain loop: the compiler makes it once for each of these processors,
// and the program takes the best that the processor has when it starts. The bits stay those of the scalar loop, since
// nothing may be contracted or put in another order (-ffp-contract=off, no -ffast-math). Chosen over Highway because
// the loops stay plain C++; a trial of both for FTRL, on another machine, found no difference. Not under sanitizers,
// whose functions cannot be called yet when the choice is made, and not with clang, which we use for checks only. On
// ARM there is nothing to choose: NEON is always there.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define PSCLOUD_VECTOR_CLONES __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define PSCLOUD_VECTOR_CLONES
#endif
