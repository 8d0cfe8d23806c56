/* SPDX-License-Identifier: Apache-2.0 */
/* The crontab that a stored job comes from. */
#pragma once

char *table_origin_of(const char *spec /* JSON */); /* FILE:LINE; NULL: the job was submitted; caller frees */
