/* SPDX-License-Identifier: MIT */
/* The polynomials of normal.h as multiples of 2^-28, from the constant on, by powers of t
 * in [0, 1). Made by tools/normal_rows. */
#ifndef WR_KERNEL_NORMAL_ROWS_H
#define WR_KERNEL_NORMAL_ROWS_H

/* log2(1 + t), and ROW(n, ...): slope(2^n (1 + t)). Row 5 is for its one x, 33. */
/* clang-format off */
#define WR_NORMAL_LOG 99, 387257753, -193358371, 126724867, -86425556, 50667927, -20307511, 3876303
#define WR_NORMAL_ROWS(ROW) \
    ROW(0, 336433927, 3192, 42248086, -28739443, 20431220, -12290479, 4984173, -956764) \
    ROW(1, 362113904, 83528805, 41607055, -27064586, 17669235, -10842131, 4504873, -874484) \
    ROW(2, 470642665, 245852138, 28941956, -40093205, 19547928, -6972155, 2174574, -414994) \
    ROW(3, 719678877, 473866784, -79483086, -19095811, 51483897, -41956538, 18288066, -3487827) \
    ROW(4, 1119294391, 678170077, -185067326, 94239455, -52362106, 25205393, -8441896, 1384742) \
    ROW(5, 1701332580, 0, 0, 0, 0, 0, 0, 0)
/* clang-format on */

#endif
