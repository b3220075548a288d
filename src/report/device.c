/* SPDX-License-Identifier: MIT */
/* The public functions: take a report of the device, hand it to the writers. Outputs are
 * untouched on failure. No lock of its own. */
#include "base/result.h"
#include "explain.h"
#include "report.h"

static weir_result take_report(weir_device *device, bool has_output,
                               weir_device_report *report)
{
    if (device == NULL || !has_output) {
        return wr_error(WEIR_INVALID, "report: the device or the output is NULL");
    }
    *report = (weir_device_report){.size = sizeof *report};
    return weir_device_memory_report(device, report);
}

weir_result weir_device_write_report(weir_device *device, weir_format format,
                                     weir_write_fn write, void *context)
{
    if (format != WEIR_FORMAT_TEXT && format != WEIR_FORMAT_JSON) {
        return wr_error(
            WEIR_INVALID,
            "weir_device_write_report: %d is no format; it is WEIR_FORMAT_TEXT (%d) "
            "or WEIR_FORMAT_JSON (%d)",
            (int)format, WEIR_FORMAT_TEXT, WEIR_FORMAT_JSON);
    }
    weir_device_report report;
    WR_TRY(take_report(device, write != NULL, &report));
    return format == WEIR_FORMAT_JSON ? wr_report_write_json(&report, write, context)
                                      : wr_report_write_text(&report, write, context);
}

weir_result weir_device_explain_lines(weir_device *device,
                                      weir_explain_line lines[WEIR_EXPLAIN_LINES])
{
    weir_device_report report;
    WR_TRY(take_report(device, lines != NULL, &report));
    wr_explain_from_report(&report, lines);
    return WEIR_OK;
}

weir_result weir_device_explain(weir_device *device, weir_write_fn write, void *context)
{
    weir_device_report report;
    WR_TRY(take_report(device, write != NULL, &report));
    return wr_explain_write_text(&report, write, context);
}

weir_result weir_device_explain_json(weir_device *device, weir_write_fn write,
                                     void *context)
{
    weir_device_report report;
    WR_TRY(take_report(device, write != NULL, &report));
    return wr_explain_write_json(&report, write, context);
}
