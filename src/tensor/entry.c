/* SPDX-License-Identifier: MIT */
#include "entry.h"

#include "kernel/memory.h"

static _Atomic uint64_t last_serial;

wr_entry *wr_entry_create(uint32_t input_count)
{
    wr_entry *entry = wr_memory_alloc(sizeof *entry + input_count * sizeof(wr_input));
    if (entry != NULL) {
        entry->references = 1;
        entry->serial =
            atomic_fetch_add_explicit(&last_serial, 1, memory_order_relaxed) + 1;
        entry->input_count = input_count;
    }
    return entry;
}

void wr_entry_retain(wr_entry *entry)
{
    atomic_fetch_add_explicit(&entry->references, 1, memory_order_relaxed);
}

static bool release_one(wr_entry *entry)
{
    return entry != NULL &&
           atomic_fetch_sub_explicit(&entry->references, 1, memory_order_acq_rel) == 1;
}

/* Takes the entry's references back; inputs that nobody else holds go on the list. */
static void empty(wr_entry *entry, wr_entry **list)
{
    weir_tensor_drop(entry->result);
    weir_tensor_drop(entry->gradient);
    entry->result = NULL;
    entry->gradient = NULL;
    for (uint32_t k = 0; k < entry->input_count; k++) {
        wr_input *input = &entry->inputs[k];
        weir_tensor_drop(input->saved);
        if (release_one(input->entry)) {
            input->entry->next = *list;
            *list = input->entry;
        }
        input->saved = NULL;
        input->entry = NULL;
    }
}

static void free_all(wr_entry *list)
{
    while (list != NULL) {
        wr_entry *entry = list;
        list = entry->next;
        empty(entry, &list);
        wr_memory_free(entry);
    }
}

void wr_entry_release(wr_entry *entry)
{
    if (release_one(entry)) {
        entry->next = NULL;
        free_all(entry);
    }
}

void wr_entry_spend(wr_entry *entry)
{
    wr_entry *list = NULL;
    empty(entry, &list);
    free_all(list);
}
