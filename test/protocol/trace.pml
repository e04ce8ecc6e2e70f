/*
 * Which traces are those of a run of saga.pml: what the API server has stored of one Transaction and of
 * its targets, in order. trace.h reads them. Each step of the model that stores something has to be
 * the next event of the trace, or the run is given up; all other steps are free.
 */

short chosen; /* the trace */

/* What it is of: these are constants in a configuration, see traced in model.go. */
byte kinds[2], window, processes, overdue, foreign, writer;

/* An event: what was done (a request, or BYOTHER), by which process of the model, at which item, and what is
 * stored since, of the target or of the Transaction. */
#define BYOTHER 9
typedef Event { byte what, by, item, uid, val, mgr, phase, st0, st1, finalizer }
Event due;     /* the next one */
byte happened; /* how many have */
bit strayed;   /* something else has happened, or nothing more has to */
#define tracked provided (!strayed)

c_code { \#include "trace.h" }

inline take() { happened++; c_code { due(now.chosen, now.happened); } }

inline happens(w, x) {
	if
	:: due.what == w && due.by == _pid && due.item == x && due.uid == (tgt[x].uid != 0) && due.val == tgt[x].val && due.mgr == tgt[x].mgr -> take()
	:: else -> strayed = 1
	fi
}

inline isstored(r) {
	if
	:: due.what == STATUS && due.by == _pid && due.phase == r.phase && due.st0 == r.st[0] && due.st1 == r.st[1] && due.finalizer == r.finalizer -> take()
	:: else -> strayed = 1
	fi
}

inline begin() {
	c_code { read_traces(); };
	do
	:: c_expr { now.chosen < traces - 1 } -> chosen++
	:: break
	od;
	c_code { set(now.chosen); };
	durable_intent = 1; atomicity = 1; no_lost_write = 1; exactly_once = 1; nothing_left = 1; order = 1; /* these are checked without a trace */
	if :: writer != NOBODY -> last = writer :: true fi /* it may not have been told that it is Preparing */
}
