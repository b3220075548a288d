/* SPDX-License-Identifier: MIT */
/* Weir: device memory with every byte accounted for. This header brings in all of
 * libweir; the tensor layer (libweir_tensor) has weir/tensor.h. */
#ifndef WEIR_H
#define WEIR_H

#include <weir/base.h>
#include <weir/device.h>
#include <weir/driver.h>
#include <weir/kernel.h>
#include <weir/memory.h>
#include <weir/pinned.h>
#include <weir/pointer.h>
#include <weir/report.h>
#include <weir/share.h>
#include <weir/sim.h>
#include <weir/stream.h>
#include <weir/webgpu.h>
#include <weir/window.h>

#endif
