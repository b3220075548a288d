/* SPDX-License-Identifier: MIT */
/* A hash table of chains that doubles when there are more kernels than chains. Ids count
 * up and are never used again. Lock: `mutex` guards everything here. */
#include "cache.h"

#include "interpret.h"
#include "memory.h"
#include "source.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define FIRST_CHAINS 64u
/* Smaller ids are for kernels that are not made at run time. */
#define FIRST_ID UINT64_C(1000)

typedef struct entry {
    wr_expression_kernel kernel;
    uint64_t hash;
    struct entry *next;
} entry;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static entry **chains;
static uint64_t chain_count; /* a power of two */
static uint64_t kernel_count;
static uint64_t next_id = FIRST_ID;

/* FNV-1a by words; the high half, which a product mixes best, comes back into the low. */
static uint64_t hash_of(const weir_expression *expression)
{
    uint64_t words[sizeof *expression / sizeof(uint64_t)];
    static_assert(sizeof words == sizeof *expression, "no byte is left out");
    uint64_t hash = UINT64_C(0xCBF29CE484222325);
    memcpy(words, expression, sizeof words);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        hash = (hash ^ words[i]) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 32;
    }
    return hash;
}

static entry *find(const weir_expression *expression, uint64_t hash)
{
    entry *at = chain_count > 0 ? chains[hash & (chain_count - 1)] : NULL;
    while (at != NULL && (at->hash != hash || memcmp(&at->kernel.expression, expression,
                                                     sizeof *expression) != 0)) {
        at = at->next;
    }
    return at;
}

static void chain_in(entry *added)
{
    entry **chain = &chains[added->hash & (chain_count - 1)];
    added->next = *chain;
    *chain = added;
}

/* False without memory; longer chains will do if there were some before. */
static bool make_room(void)
{
    if (kernel_count < chain_count) {
        return true;
    }
    uint64_t old_count = chain_count;
    uint64_t new_count = old_count > 0 ? 2 * old_count : FIRST_CHAINS;
    entry **grown = wr_memory_alloc(new_count * sizeof(entry *));
    if (grown == NULL) {
        return old_count > 0;
    }
    entry **old = chains;
    chains = grown;
    chain_count = new_count;
    for (uint64_t i = 0; i < old_count; i++) {
        for (entry *at = old[i], *next; at != NULL; at = next) {
            next = at->next;
            chain_in(at);
        }
    }
    wr_memory_free(old);
    return true;
}

static entry *make(const weir_expression *expression, uint64_t hash)
{
    entry *made = make_room() ? wr_memory_alloc(sizeof *made) : NULL;
    if (made == NULL) {
        return NULL;
    }
    wr_expression_kernel *kernel = &made->kernel;
    made->hash = hash;
    kernel->expression = *expression;
    wr_plan_make(expression, &kernel->plan);
    kernel->base = (weir_kernel){
        .kind = WEIR_KERNEL_EXPRESSION,
        .name = kernel->name,
        .id = next_id++,
        .expression = &kernel->expression,
        .host = wr_interpret,
        .source = wr_source_write,
    };
    snprintf(kernel->name, sizeof kernel->name, "fused_%" PRIu64, kernel->base.id);
    chain_in(made);
    kernel_count++;
    return made;
}

const weir_kernel *wr_cache_find(const weir_expression *expression)
{
    uint64_t hash = hash_of(expression);
    pthread_mutex_lock(&mutex);
    entry *found = find(expression, hash);
    if (found == NULL) {
        found = make(expression, hash);
    }
    pthread_mutex_unlock(&mutex);
    return found != NULL ? &found->kernel.base : NULL;
}

void wr_cache_clear(void)
{
    pthread_mutex_lock(&mutex);
    for (uint64_t i = 0; i < chain_count; i++) {
        for (entry *at = chains[i], *next; at != NULL; at = next) {
            next = at->next;
            wr_memory_free(at);
        }
    }
    wr_memory_free(chains);
    chains = NULL;
    chain_count = 0;
    kernel_count = 0;
    pthread_mutex_unlock(&mutex);
}

uint64_t wr_cache_count(void)
{
    pthread_mutex_lock(&mutex);
    uint64_t count = kernel_count;
    pthread_mutex_unlock(&mutex);
    return count;
}
