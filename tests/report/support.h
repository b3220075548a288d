/* SPDX-License-Identifier: MIT */
/* What the report tests share: text sinks and a report made by hand. */
#ifndef TEST_REPORT_SUPPORT_H
#define TEST_REPORT_SUPPORT_H

#include <weir/report.h>

/* Keeps what it is given, with a zero byte behind. Zeroed is empty. */
typedef struct capture {
    char text[16384];
    size_t used_bytes;
    unsigned call_count;
    unsigned fail_call; /* the call that fails with IO, 1 is the first; 0: none */
} capture;

weir_result capture_write(void *context, const char *text, size_t text_bytes);

/* A busy device whose sums are right: something in each of the seven places. */
void sample_report(weir_device_report *report);

#endif
