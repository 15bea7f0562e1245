/* runs.h - how often a property is tried: sanitizers cost a factor of three to ten, and what they
 * look for shows in a fifth of the runs; the release build does them all. */
#ifndef REMAP_TESTS_RUNS_H
#define REMAP_TESTS_RUNS_H

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RUNS_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(RUNS_SANITIZED)
#define RUNS_OF(n) ((n) / 5)
#else
#define RUNS_OF(n) (n)
#endif

#endif
