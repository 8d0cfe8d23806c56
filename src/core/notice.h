/* SPDX-License-Identifier: Apache-2.0 */
/* A notice is what somebody is to be told about a job; when there is one, and what it says. */
#pragma once

enum notice_state {
	NOTICE_WAITING, /* to be sent, or sent again */
	NOTICE_SENT,
	NOTICE_FAILED,  /* given up */
	NOTICE_STATE_MAX
};
