/* SPDX-License-Identifier: MIT */
/* The control group that bounds this process's memory, version 1 or 2. */
#ifndef WR_DRIVER_HOST_GROUP_H
#define WR_DRIVER_HOST_GROUP_H

#include <stdbool.h>
#include <stdint.h>

#define WR_GROUP_PATH_BYTES 1024

typedef struct wr_group {
    bool is_v2;
    uint64_t limit_bytes;           /* UINT64_MAX: no limit */
    char path[WR_GROUP_PATH_BYTES]; /* the folder of the group that sets the limit */
} wr_group;

/* Finds the tightest limit among the group that `listing` (the text of /proc/self/cgroup)
 * names and its parents, under the mount point `root` ("/sys/fs/cgroup"). */
void wr_group_find(const char *root, const char *listing, wr_group *group);

/* Bytes of anonymous memory of all processes in the group; false if it does not say. */
bool wr_group_anonymous(const wr_group *group, uint64_t *bytes);

#endif
