/* SPDX-License-Identifier: MIT */
#include "node.h"

#include "kernel/memory.h"

void wr_node_destroy(wr_node *node)
{
    if (node == NULL) {
        return;
    }
    for (uint32_t k = 0; k < node->operand_count; k++) {
        wr_storage_release(node->operands[k].storage);
    }
    if (node->storage != NULL && node->storage->node == node) {
        node->storage->node = NULL;
    }
    wr_storage_release(node->storage);
    wr_memory_free(node->named);
    wr_memory_free(node);
}
