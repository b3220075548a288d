/* SPDX-License-Identifier: MIT */
/* Presets: named lists of layouts. */
#ifndef WR_MANAGER_PRESET_H
#define WR_MANAGER_PRESET_H

#include "manager.h"

/* Fills bank->classes for a preset's name (NULL: "elastic") on the bank's driver.
 * INVALID, with the names there are, for an unknown one. */
weir_result wr_preset_fill(wr_bank *bank, const char *preset);

#endif
