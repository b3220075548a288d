/* SPDX-License-Identifier: MIT */
/* Names of fields. */
#include "field.h"

static const char *const names[] = {
#define NAME(id, text, member) [WR_SCN_FIELD_##id] = text,
    WR_SCN_USAGE_FIELDS(NAME) WR_SCN_REPORT_FIELDS(NAME) WR_SCN_LEDGER_FIELDS(NAME)
        WR_SCN_LAST_FIELDS(NAME)
#undef NAME
            [WR_SCN_FIELD_tag] = "tag",
};

const char *wr_scn_field_name(wr_scn_field field)
{
    return names[field];
}

bool wr_scn_field_find(wr_scn_text name, wr_scn_field *field)
{
    for (int i = 0; i < WR_SCN_FIELD_COUNT; i++) {
        if (wr_scn_text_is(name, names[i])) {
            *field = (wr_scn_field)i;
            return true;
        }
    }
    return false;
}
