/* SPDX-License-Identifier: MIT */
/* A group's limit holds for its children too, so the tightest one on the way up to the
 * root counts. In a container the listing may name a path of the host that is not mounted
 * there; the walk then ends at the container's own root, which carries the limit. No
 * state, no lock. */
#include "group.h"

#include "system.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define FILE_BYTES 8192
#define NAMES_BYTES 256

/* A line of the listing is "number:controllers:path"; version 2 has number 0, no
 * controllers. */
static bool parse_line(const char *line, const char *end, bool *is_v2, char *path)
{
    char text[WR_GROUP_PATH_BYTES];
    char names[NAMES_BYTES];
    if ((size_t)(end - line) >= sizeof text) {
        return false;
    }
    snprintf(text, sizeof text, "%.*s", (int)(end - line), line);
    *is_v2 = strncmp(text, "0::", 3) == 0;
    if (*is_v2) {
        memcpy(path, text + 3, strlen(text + 3) + 1);
        return true;
    }
    char *first = strchr(text, ':');
    char *second = first == NULL ? NULL : strchr(first + 1, ':');
    if (second == NULL) {
        return false;
    }
    *second = '\0';
    snprintf(names, sizeof names, ",%s,", first + 1);
    memcpy(path, second + 1, strlen(second + 1) + 1);
    return strstr(names, ",memory,") != NULL;
}

/* The path of the process's memory group. Where both versions are mounted, memory belongs
 * to version 1 if that lists it. */
static bool find_path(const char *listing, bool *is_v2, char *path)
{
    bool found = false;
    for (const char *line = listing; *line != '\0';) {
        const char *end = line + strcspn(line, "\n");
        char candidate[WR_GROUP_PATH_BYTES];
        bool candidate_is_v2;
        if (parse_line(line, end, &candidate_is_v2, candidate) &&
            (!found || !candidate_is_v2)) {
            *is_v2 = candidate_is_v2;
            memcpy(path, candidate, sizeof candidate);
            found = true;
        }
        line = *end == '\n' ? end + 1 : end;
    }
    return found;
}

/* The limit of the group in the folder `path`; UINT64_MAX if it has none. */
static uint64_t read_limit(const char *path, bool is_v2)
{
    char file[WR_GROUP_PATH_BYTES + 32];
    char text[FILE_BYTES];
    snprintf(file, sizeof file, "%s/%s", path,
             is_v2 ? "memory.max" : "memory.limit_in_bytes");
    uint64_t limit;
    bool limited =
        wr_system_read(file, text, sizeof text) && sscanf(text, "%" SCNu64, &limit) == 1;
    return limited ? limit : UINT64_MAX;
}

void wr_group_find(const char *root, const char *listing, wr_group *group)
{
    char below[WR_GROUP_PATH_BYTES];
    *group = (wr_group){.limit_bytes = UINT64_MAX};
    if (!find_path(listing, &group->is_v2, below)) {
        return;
    }
    const char *mount = group->is_v2 ? "" : "/memory";
    for (size_t length = strlen(below);;) {
        char path[WR_GROUP_PATH_BYTES];
        int bytes =
            snprintf(path, sizeof path, "%s%s%.*s", root, mount, (int)length, below);
        uint64_t limit =
            bytes < (int)sizeof path ? read_limit(path, group->is_v2) : UINT64_MAX;
        if (limit < group->limit_bytes) {
            group->limit_bytes = limit;
            memcpy(group->path, path, sizeof path);
        }
        if (length == 0) {
            return;
        }
        while (length > 0 && below[--length] != '/') {
        }
    }
}

bool wr_group_anonymous(const wr_group *group, uint64_t *bytes)
{
    char file[WR_GROUP_PATH_BYTES + 32];
    char text[FILE_BYTES];
    snprintf(file, sizeof file, "%s/memory.stat", group->path);
    return wr_system_read(file, text, sizeof text) &&
           wr_system_number(text, group->is_v2 ? "anon" : "total_rss", bytes);
}
