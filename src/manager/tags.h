/* SPDX-License-Identifier: MIT */
/* Tags: short names of who asked for bytes, numbered per device. */
#ifndef WR_MANAGER_TAGS_H
#define WR_MANAGER_TAGS_H

#include "manager.h"

/* The number of a tag, made up if new. 0: NULL or empty, untagged. When the table is
 * full, or the host has no memory, WR_TAG_OTHER. Any thread, no lock held or the
 * manager's. */
uint16_t wr_tags_intern(wr_bank *bank, const char *text);

/* The number of a tag that was seen before; false if it was not. */
bool wr_tags_find(wr_bank *bank, const char *text, uint16_t *tag);

/* One tag's numbers; `usage` is overwritten. Tag 0 is what no tag holds; its peak is the
 * device's, which it cannot have passed. */
void wr_tags_sum(wr_bank *bank, uint16_t tag, weir_tag_usage *usage);

/* All tags with live buffers, largest first: fills at most `capacity`, returns how many.
 */
size_t wr_tags_list(wr_bank *bank, weir_tag_usage *tags, size_t capacity);

#endif
