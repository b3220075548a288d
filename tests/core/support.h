/* SPDX-License-Identifier: MIT */
/* What the tests of the core share: opening a sim device, asserting results together with
 * their texts, and the checks that must hold at every moment. Drivers are the real ones.
 */
#ifndef TESTS_CORE_SUPPORT_H
#define TESTS_CORE_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <weir/weir.h>

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

/* A device on the sim driver, with the two things that tests ask it for all the time. */
typedef struct rig {
    weir_device *device;
    weir_driver *sim;
    weir_stream *stream; /* the default one */
} rig;

/* NULL: the sim's defaults; NULL: a device whose time passes only by ticks. */
rig rig_open(const weir_sim_desc *sim, const weir_device_desc *desc);
/* No buffer is live: finishes all work, cleans up, expects `reserved` to be 0 and closes.
 */
void rig_close(rig *r);
/* The sim's defaults without granules. */
weir_sim_desc plain_sim(void);

weir_stream *open_stream(weir_device *device, const char *name);
/* One piece of device work on a stream, and its completion. */
void queue_work(rig *r, weir_stream *stream);
void finish_work(rig *r, weir_stream *stream);

/* Create or release; must succeed. */
weir_buffer make(weir_stream *stream, uint64_t bytes, const char *tag);
void drop(weir_buffer buffer);

weir_usage usage_of(weir_device *device);
/* The usage once nothing is queued anywhere. */
weir_usage settled_usage(weir_device *device);
weir_sim_ledger ledger_of(rig *r);
/* Attempted calls: those that take or give memory, those that record, test or wait, all.
 */
uint64_t memory_calls(const weir_sim_ledger *ledger);
uint64_t order_calls(const weir_sim_ledger *ledger);
uint64_t all_calls(const weir_sim_ledger *ledger);

/* The sums of one snapshot hold. */
void assert_sums(const weir_usage *usage);
/* The sums hold, the driver's ledger agrees, and no walker finds anything wrong. */
void assert_consistent(rig *r);
/* Bytes now are the same in both (peaks and events aside). */
void assert_same_bytes(const weir_usage *one, const weir_usage *other);

/* Wrong calls between the two change nothing. */
typedef struct still {
    rig *r;
    weir_usage before;
} still;
still hold_still(rig *r);
void assert_unchanged(const still *was);

/* Whether a buffer shares no byte with a range. */
bool apart(weir_buffer one, uint64_t address, uint64_t extent);
/* No memory, fence or stream call has reached the driver since `before`. */
void assert_driver_quiet(rig *r, const weir_sim_ledger *before);
/* Runs a check on a device with granules and on one with whole pages. */
void on_both(void (*check)(rig *r));

weir_cleanup_outcome cleanup(weir_device *device, const weir_cleanup_desc *desc);
/* What explain writes; valid until the next call. */
const char *explain(weir_device *device);
void assert_says(const char *text, const char *part);

/* The call returns `expected`; if that is a failure, it left a text. */
#define assert_result(call, expected)                                                    \
    check_result((call), (expected), #call, __FILE__, __LINE__)
#define assert_ok(call) assert_result(call, WEIR_OK)
void check_result(weir_result result, weir_result expected, const char *call,
                  const char *file, int line);

/* Any failure with a text. */
void assert_error(weir_result result);

/* A number from the environment. */
uint64_t environment_number(const char *name, uint64_t otherwise);

#endif
