/* SPDX-License-Identifier: MIT */
/* Graph capture: `capture begin`, `end`, `abort` and `destroy`. The library has no calls
 * for it yet, so a scenario that captures fails, and says so. */
#include "run.h"

bool wr_scn_run_capture(wr_scn_run *run, const wr_scn_statement *statement)
{
    (void)statement;
    return wr_scn_fail(run, "capture is not available in this build");
}
