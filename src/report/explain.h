/* SPDX-License-Identifier: MIT */
/* The seven places where bytes can be, in words: pure functions of a weir_device_report.
 * Any thread. */
#ifndef WR_REPORT_EXPLAIN_H
#define WR_REPORT_EXPLAIN_H

#include <weir/report.h>

/* Cannot fail; lists that do not fit a reason end in what is left out. */
void wr_explain_from_report(const weir_device_report *report,
                            weir_explain_line lines[WEIR_EXPLAIN_LINES]);

/* The seven lines, each with its way out, then the sums. */
weir_result wr_explain_write_text(const weir_device_report *report, weir_write_fn write,
                                  void *context);
weir_result wr_explain_write_json(const weir_device_report *report, weir_write_fn write,
                                  void *context);

#endif
