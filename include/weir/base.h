/* SPDX-License-Identifier: MIT */
/* Results, error text, version and text sinks: what every other header uses. */
#ifndef WEIR_BASE_H
#define WEIR_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define WEIR_API __attribute__((visibility("default")))
#else
#define WEIR_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_VERSION_MAJOR 0
#define WEIR_VERSION_MINOR 1
#define WEIR_VERSION_PATCH 0

/* Every result: name, number, sentence. Numbers are part of the ABI and never reused. */
#define WEIR_RESULT_LIST(X)                                                              \
    X(OK, 0, "success")                                                                  \
    X(INVALID, 1, "an argument is not valid")                                            \
    X(OUT_OF_MEMORY, 2, "the device has no room for the request")                        \
    X(LIMIT, 3, "a configured limit does not allow the request")                         \
    X(BUSY, 4, "the object is still in use")                                             \
    X(STALE, 5, "the handle's buffer has already been released")                         \
    X(NOT_FOUND, 6, "no such thing")                                                     \
    X(UNSUPPORTED, 7, "the driver cannot do this")                                       \
    X(DRIVER, 8, "a driver call failed")                                                 \
    X(DEVICE_LOST, 9, "the device or its driver is gone")                                \
    X(FORKED, 10, "the device was opened by the parent process")                         \
    X(OUT_OF_HOST_MEMORY, 11, "the host has no memory for bookkeeping")                  \
    X(NOT_READY, 12, "queued device work has not finished yet")                          \
    X(IO, 13, "reading or writing failed")

typedef enum weir_result {
#define WEIR_RESULT_ENUM(name, number, sentence) WEIR_##name = number,
    WEIR_RESULT_LIST(WEIR_RESULT_ENUM)
#undef WEIR_RESULT_ENUM
} weir_result;

/* The name of a result without its prefix ("OUT_OF_MEMORY"); "UNKNOWN" for other numbers.
 * Static text. Any thread. */
WEIR_API const char *weir_result_name(weir_result result);

/* One sentence for a result. Static text. Any thread. */
WEIR_API const char *weir_result_text(weir_result result);

/* What the last failing Weir call of this thread asked, found and advises; "" if none
 * failed. The text belongs to the thread and is valid until its next failing call. Never
 * NULL. */
WEIR_API const char *weir_last_error(void);

/* "0.1.0". Static text. */
WEIR_API const char *weir_version(void);

/* A sink for text. `text` is not terminated and not kept. Anything but OK stops the
 * writer, which then returns that result. */
typedef weir_result (*weir_write_fn)(void *context, const char *text, size_t text_bytes);

/* A weir_write_fn whose context is a FILE *. */
WEIR_API weir_result weir_write_file(void *file, const char *text, size_t text_bytes);

/* The forms in which reports are written. */
typedef enum weir_format {
    WEIR_FORMAT_TEXT = 0,
    WEIR_FORMAT_JSON = 1,
} weir_format;

#ifdef __cplusplus
}
#endif
#endif
