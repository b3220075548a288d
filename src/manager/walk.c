/* SPDX-License-Identifier: MIT */
/* Walkers over everything an owner has: visits, and the check of books against slices. */
#include "manager.h"

#include "graph.h"

#include "base/result.h"

#include <stddef.h>

static void visit_span(wr_page *page, uint32_t granule, wr_slice_visitor visit,
                       void *context)
{
    wr_slice_id id = page->granules[granule].first;
    while (id != 0) {
        wr_slice *slice = wr_slice_get(id);
        id = slice->next;
        visit(context, page, slice);
    }
}

static void visit_range(wr_page *page, const wr_pool *pool, wr_slice_visitor visit,
                        void *context)
{
    const wr_pool *before = NULL;
    for (uint32_t g = 0; page != NULL && g < page->touched; g++) {
        const wr_pool *owner = page->granules[g].owner;
        if (owner == pool && before != pool) {
            visit_span(page, g, visit, context);
        }
        before = owner;
    }
}

void wr_pool_visit(wr_bank *bank, wr_pool *pool, wr_slice_visitor visit, void *context)
{
    wr_class *class = &bank->classes[pool->number];
    visit_range(class->range, pool, visit, context);
    for (wr_page *page = class->whole_pages; page != NULL;) {
        wr_page *next = page->next;
        if (page->granules[0].owner == pool) {
            visit_span(page, 0, visit, context);
        }
        page = next;
    }
}

static const char *walk_pages(const wr_class *class, const wr_pool *pool,
                              wr_totals *totals)
{
    const char *wrong = NULL;
    if (class->range != NULL) {
        wrong = wr_page_walk(class->range, pool, pool->moment, totals);
    }
    for (wr_page *page = class->whole_pages; page != NULL && wrong == NULL;
         page = page->next) {
        wrong = wr_page_walk(page, pool, pool->moment, totals);
    }
    return wrong;
}

static const char *compare(const wr_totals *books, const wr_totals *walked)
{
    if (books->in_use != walked->in_use || books->live != walked->live) {
        return "in_use or live is not what the slices hold";
    }
    if (books->padding != walked->padding) {
        return "padding is not the rest of the slices";
    }
    if (books->deferred != walked->deferred) {
        return "deferred is not what the slices wait for";
    }
    if (books->releasable != walked->releasable) {
        return "releasable is not what whole granules hold";
    }
    return books->pinned != walked->pinned
               ? "pinned is not what partly held granules have free"
               : NULL;
}

static const char *walk_pool(wr_bank *bank, wr_pool *pool, wr_totals *walked)
{
    wr_totals books = {0};
    wr_books_sum(&pool->books, &books);
    const char *wrong = walk_pages(&bank->classes[pool->number], pool, walked);
    wrong = wrong == NULL ? compare(&books, walked) : wrong;
    return wrong == NULL ? wr_pool_walk(pool) : wrong;
}

const char *wr_manager_walk(wr_manager *manager)
{
    uint64_t in_use = 0;
    const char *wrong = NULL;
    wr_manager_recount(manager);
    wr_lock_take(&manager->bank->lock);
    for (uint32_t i = 0; i < manager->bank->class_count && wrong == NULL; i++) {
        wr_totals walked = {0};
        wrong = walk_pool(manager->bank, &manager->pools[i], &walked);
        in_use += walked.in_use;
    }
    wr_lock_leave(&manager->bank->lock);
    if (wrong == NULL && in_use != WR_OWN(manager->in_use)) {
        wrong = "a stream's in_use is not the sum of its pools'";
    }
    return wrong == NULL ? wr_graph_walk(manager) : wrong;
}

const char *wr_bank_walk(wr_bank *bank)
{
    const char *wrong = NULL;
    wr_bank_lock(bank);
    for (uint32_t i = 0; i < bank->class_count && wrong == NULL; i++) {
        wr_class *class = &bank->classes[i];
        wr_totals walked = {0};
        uint64_t count = 0, bytes = 0;
        wr_pool_recount(&class->bank);
        wrong = walk_pool(bank, &class->bank, &walked);
        if (wrong == NULL && class->bare != NULL) {
            wrong = wr_index_walk(class->bare, WR_SLICE_STATE_BARE, &count, &bytes);
        }
    }
    wr_bank_unlock(bank);
    return wrong;
}
