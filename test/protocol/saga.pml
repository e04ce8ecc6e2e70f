/*
 * The saga of one Transaction: two items, one or two processes of janusd that run it, an API server
 * that loses answers and lets requests land late, another client that writes the targets, and
 * crashes. There is no lock in it: guarantees 1 to 4 hold without.
 *
 * To read it, begin with the world (the API server and its objects), then the guarantees, which are
 * assertions in land() and write(), then the process, which is the engine. A label of the process
 * names the Go function that it models. docs/protocol.md says what is left out.
 *
 * A configuration gives the kinds of the items (KIND0, KIND1), how many intents are opened at once
 * (WINDOW), how many processes there are (PROCESSES), and how often what can happen (CRASHES, LOST,
 * LATE, FOREIGN, DENIED, WAITS, OVERDUE). A mutation (-DM_...) is a seeded defect.
 */

#define ITEMS 2

/* What an item does. */
#define PATCH  1
#define CREATE 2
#define DELETE 3
#ifndef KIND0
#define KIND0 PATCH
#endif
#ifndef KIND1
#define KIND1 CREATE
#endif
#define kind(x) ((x) == 0 -> KIND0 : KIND1)

#ifndef WINDOW
#define WINDOW 2
#endif
#ifndef PROCESSES
#define PROCESSES 2
#endif
#ifndef CRASHES
#define CRASHES 1
#endif
#ifndef LOST
#define LOST 1
#endif
#ifndef LATE
#define LATE 1
#endif
#ifndef FOREIGN
#define FOREIGN 1
#endif
#ifndef DENIED
#define DENIED 1
#endif
#ifndef WAITS
#define WAITS 0 /* an attempt fails for what is not modelled, such as a lock, or a server that has no time */
#endif
#ifndef OVERDUE
#define OVERDUE 1 /* the time of the Transaction may be over at any moment */
#endif

/* A search that is too large for the memory is made in parts: the parts of all values together are the whole. */
#ifdef LATEOF
#define lateof(x) ((x) == LATEOF) /* what may be late: a request for item 0 or 1, or a STATUS */
#else
#define lateof(x) true
#endif
#ifdef LATEBY
#define lateby(x) ((x) == LATEBY) /* whose request is late */
#else
#define lateby(x) true
#endif
#ifdef CRASHOF
#define crashof(x) ((x) == CRASHOF) /* the process that dies */
#else
#define crashof(x) true
#endif
#ifdef FOREIGNOF
#define foreignof(x) ((x) == FOREIGNOF) /* the item of which another client writes the target */
#else
#define foreignof(x) true
#endif

/* ---- The world -------------------------------------------------------------------------------- */

/* A target. n is its resourceVersion; a uid is the n with which the object was made, 0 if there is none. */
#define NONE   0
#define OLD    1 /* the value of before */
#define NEW    2 /* the value of the change */
#define THEIRS 3 /* a value of another client */
typedef Target { byte n; byte uid; byte val; bit mgr /* the item's field manager is on it */ }
Target tgt[ITEMS];

/* The Transaction. Two processes write its status, so "nobody has written it since I read it" is one
 * bit for each, and stands for the comparison of resourceVersions. */
#define PREPARING   1
#define PREPARED    2
#define FAILING     3 /* Preparing or Prepared, with the condition that it has failed */
#define COMMITTING  4
#define ROLLINGBACK 5
#define COMMITTED   6
#define ROLLEDBACK  7
#define FAILED      8
#define ended(p) ((p) >= COMMITTED)
#define I_PREPARED    1
#define I_COMMITTING  2
#define I_COMMITTED   3
#define I_ROLLINGBACK 4
#define I_ROLLEDBACK  5
#define I_REJECTED    6
#define I_UNRESOLVED  7
typedef Record { byte phase; byte st[ITEMS]; bit finalizer; byte ref /* whose before-images it names */ }
Record txn;
bit fresh[2];  /* the copy of the process is what is stored */
bit creating[2]; /* it has looked, and is about to send a creation */
bit looked[2]; /* it has seen a creation in effect that another recorded, and has not written that down: a known limit */
bit timely[2]; /* less than policy.Lateness ago the process has heard of it */
#define NOBODY 2
byte last = NOBODY; /* who has written it last, and was told so */

/* Before-images are immutable objects: each process saves its own, and the status names one. */
typedef Image { bit stored; byte uid[ITEMS]; byte n[ITEMS]; byte val[ITEMS] }
Image images[2];

/* Requests for a target. */
#define APPLY   1 /* do of a Patch */
#define POST    2 /* do of a Create */
#define REMOVE  3 /* do of a Delete */
#define RESTORE 4 /* undo of a Patch: the values */
#define OWNERS  5 /* undo, or hand-over: the field owners */
#define UNMAKE  6 /* undo of a Create */
#define REMAKE  7 /* undo of a Delete */
#define STATUS  8 /* a write of the status */
#define isdo(o) ((o) <= REMOVE)

/* One request may be under way whose sender has given it up or has died. */
typedef Late { byte op; byte item; byte uid; byte n }
Late late;
Record laterec; /* of a STATUS */

byte crashes = CRASHES, losts = LOST, lates = LATE, denied = DENIED, waits = WAITS;
bit begun;

/* With a trace, trace.pml compares what happens with it. */
#ifdef TRACE
#include "trace.pml"
#else
#define happens(o, x)
#define isstored(r)
#define begin()
#define tracked
#endif

/* ---- The guarantees --------------------------------------------------------------------------- */

/* An assertion that fails names its guarantee: it is printed as "((atomicity||...))". */
bit durable_intent, atomicity, no_lost_write, exactly_once, nothing_left, order;

/* What has happened, for the assertions alone. */
bit opened[ITEMS]; /* an intent was stored */
byte did[ITEMS], undid[ITEMS];
byte deleted[ITEMS]; /* another client has deleted what was made */
bit effect[ITEMS]; /* something of the change is in effect */
byte quiet; /* processes that have nothing more to do */

#ifdef M_REPLAY_WITHOUT_RESOURCE_VERSION
#define fits(o, x, u, v) (isdo(o) -> tgt[x].uid == u && u : tgt[x].uid == u && u && tgt[x].n == v)
#else
#ifdef M_APPLY_WITHOUT_UID
#define fits(o, x, u, v) (o == APPLY && tgt[x].uid == 0 || tgt[x].uid == u && u && tgt[x].n == v)
#else
#ifdef M_UNDO_OF_CREATE_UNCONDITIONAL
#define fits(o, x, u, v) (o == UNMAKE -> tgt[x].uid : tgt[x].uid == u && u && tgt[x].n == v)
#else
#define fits(o, x, u, v) (tgt[x].uid == u && u && tgt[x].n == v)
#endif
#endif
#endif

/* A request that is under way, and would be refused from now on, is as good as none. */
inline outdate(x) {
	if
	:: late.op && late.op != STATUS && late.op != POST && late.op != REMAKE && late.item == x && !fits(late.op, x, late.uid, late.n) -> forgetlate()
	:: else
	fi
}

/* The API server carries out a request for a target, if its precondition holds. */
inline land(o, x, u, v, met) {
	met = ((o == POST || o == REMAKE) -> tgt[x].uid == 0 : fits(o, x, u, v));
	if
	:: !met
	:: met ->
		printf("request %d lands at item %d (process %d)\n", o, x, _pid);
		/* 1, durable intent: the intent and the before-image are on record before a write. */
		assert(durable_intent || (opened[x] && images[txn.ref].stored || o == OWNERS));
		/* 2, atomicity: nothing comes into effect once the end was told. */
		assert(atomicity || !ended(txn.phase));
		/* 3, no lost write: a value of another client is overwritten, or deleted, only if it was seen at prepare. */
		assert(no_lost_write || o == OWNERS || tgt[x].val != THEIRS || images[txn.ref].val[x] == THEIRS && tgt[x].n == v);
		tgt[x].n++;
		if
		:: isdo(o) ->
			/* 4, exactly once. */
			assert(exactly_once || did[x] <= deleted[x]);
			/* The order of the list. */
			assert(order || x == 0 || did[0]);
			did[x]++; effect[x] = 1
		:: o == RESTORE || o == UNMAKE || o == REMAKE ->
			assert(exactly_once || undid[x] == 0);
			/* Reverse order: a later change that is still in effect is on record as Unresolved. */
			assert(order || x == 1 || !effect[1] || txn.st[1] == I_UNRESOLVED);
			undid[x]++; effect[x] = 0
		:: else
		fi;
		if
		:: o == APPLY -> tgt[x].val = NEW; tgt[x].mgr = 1; if :: tgt[x].uid == 0 -> tgt[x].uid = tgt[x].n :: else fi
		:: o == POST -> tgt[x].uid = tgt[x].n; tgt[x].val = NEW; tgt[x].mgr = 1
		:: o == REMAKE -> tgt[x].uid = tgt[x].n; tgt[x].val = images[txn.ref].val[x]; tgt[x].mgr = 1
		:: o == RESTORE -> tgt[x].val = images[txn.ref].val[x]
		:: o == OWNERS -> tgt[x].mgr = 0
		:: o == REMOVE || o == UNMAKE -> tgt[x].uid = 0; tgt[x].val = NONE; tgt[x].mgr = 0
		fi;
		happens(o, x);
		outdate(x)
	fi
}

/* The API server stores a status. */
inline write(r) {
	printf("status: phase %d, items %d %d (process %d)\n", r.phase, r.st[0], r.st[1], _pid);
	if
	:: r.phase == COMMITTED ->
		/* 2: Committed means that every change is in effect exactly once. */
		assert(atomicity || did[0] && did[0] <= 1 + deleted[0] && did[1] && did[1] <= 1 + deleted[1] && !undid[0] && !undid[1]);
		/* 7: nothing is left behind in a final phase. */
		assert(nothing_left || !r.finalizer && !images[r.ref].stored && !tgt[0].mgr && !tgt[1].mgr)
	:: r.phase == ROLLEDBACK ->
		/* 2: RolledBack means that nothing is in effect, and that no field manager of ours is left. */
		assert(atomicity || !effect[0] && !effect[1] && !tgt[0].mgr && !tgt[1].mgr);
		assert(nothing_left || !r.finalizer && images[r.ref].stored)
	:: r.phase == FAILED ->
		/* 2: Failed means that an item says why it could not be rolled back, or that nothing was made. */
		assert(atomicity || (r.st[0] == I_UNRESOLVED || !effect[0]) && (r.st[1] == I_UNRESOLVED || !effect[1]));
		assert(nothing_left || !r.finalizer)
	:: else
	fi;
	/* A phase never goes back, and a final one is final. */
	assert(atomicity || r.phase >= txn.phase && !ended(txn.phase));
	copy(txn, r);
	opened[0] = opened[0] || r.st[0] == I_COMMITTING;
	opened[1] = opened[1] || r.st[1] == I_COMMITTING;
	fresh[0] = 0; fresh[1] = 0;
	isstored(r);
	if :: late.op == STATUS -> forgetlate() :: else fi /* it is refused, or is this one */
}

inline copy(to, from) {
	to.phase = from.phase; to.st[0] = from.st[0]; to.st[1] = from.st[1];
	to.finalizer = from.finalizer; to.ref = from.ref
}

inline forgetimages(x) {
	images[x].stored = 0;
	images[x].uid[0] = 0; images[x].n[0] = 0; images[x].val[0] = 0;
	images[x].uid[1] = 0; images[x].n[1] = 0; images[x].val[1] = 0
}

inline forgetlate() {
	late.op = 0; late.item = 0; late.uid = 0; late.n = 0;
	laterec.phase = 0; laterec.st[0] = 0; laterec.st[1] = 0; laterec.finalizer = 0; laterec.ref = 0
}

/* A request that was given up lands at last, or never does. */
proctype network() tracked {
	bit met;
	byte lop, item, luid, ln;
end:	do
	:: atomic { late.op && late.op != STATUS ->
		lop = late.op; item = late.item; luid = late.uid; ln = late.n; forgetlate();
		land(lop, item, luid, ln, met);
		lop = 0; item = 0; luid = 0; ln = 0; met = 0 }
	:: atomic { late.op == STATUS -> write(laterec); last = NOBODY }
	:: atomic { late.op -> forgetlate() }
	od
}

/* A process may send a creation without another look at the target: it is about to, or goes on for less than
 * policy.Lateness after another has written. A deletion meanwhile would be met by that creation: a known limit. */
#define blind(p) (creating[p] || timely[p] && !fresh[p])

/* Another client, which knows nothing of Janus. */
proctype other() tracked {
	byte left = FOREIGN;
end:	do
	:: atomic { left -> left--; printf("another client writes\n");
		byte x = 0;
		if :: foreignof(0) -> x = 0 :: foreignof(1) -> x = 1 fi;
		if
		:: tgt[x].uid -> tgt[x].n++ /* the status, as controllers do */
		:: tgt[x].uid -> /* the field of the change */
			tgt[x].n++; tgt[x].val = THEIRS;
			if
			:: kind(x) == PATCH -> tgt[x].mgr = 0 /* all fields of the change */
			:: true /* one of them */
			fi
		:: tgt[x].uid && (kind(x) == PATCH || kind(x) == CREATE && !blind(0) && !blind(1) && !(late.op == POST && late.item == x)) ->
			tgt[x].n++; tgt[x].uid = 0; tgt[x].val = NONE; tgt[x].mgr = 0;
			if :: kind(x) == CREATE && effect[x] -> effect[x] = 0; deleted[x]++ :: else fi /* what it has deleted is not in effect */
		:: tgt[x].uid == 0 -> tgt[x].n++; tgt[x].uid = tgt[x].n; tgt[x].val = THEIRS; tgt[x].mgr = 0
		fi;
		happens(BYOTHER, x);
		outdate(x);
		x = 0 }
	od
}

/* ---- A process of janusd ---------------------------------------------------------------------- */

/* plan.Knowledge: what a process knows of an open intent beyond the record. */
#define UNKNOWN     0
#define UNSENT      1
#define INEFFECTIVE 2
#define OVER        3
#define noeffect(x) (known[x] == UNSENT || known[x] == INEFFECTIVE)
#define anyover     (known[0] == OVER || known[1] == OVER)

/* Answers to a request. */
#define OK    1
#define STALE 2 /* the precondition did not hold: 409, or AlreadyExists */
#define GONE  3 /* no answer */
#define NO    4 /* refused for good, as by a policy */
#define BUSY  5 /* refused for now */

/* What an observation finds: outcome.Finding. */
#define NOTAPPLIED 1
#define APPLIED    2
#define DIVERGED   3

/* Which before-images are kept: those of a rollback. */
#define kept(r) (r.phase == ROLLEDBACK || r.phase == FAILED && (r.st[0] == I_UNRESOLVED || r.st[1] == I_UNRESOLVED))

/* Where a process goes on after a checkpoint. */
#define DECIDE  0
#define SEND    1
#define FINALLY 2
#define PREPARE 3
#define START   4

inline may_die() { if :: crashes && crashof(c) -> crashes--; printf("process %d dies\n", c); goto died :: true fi }

/* engine.unsure, and memory.Settled with it */
inline unsure() { known[i] = UNKNOWN }

inline next() { copy(nx, t) }

/* The value in the before-image that the status names. */
#define before(x) images[t.ref].val[x]

/* mutate.Change.made */
#ifdef M_OWN_OBJECT_TAKEN_FOR_FOREIGN
#define made(x) false
#else
#ifdef M_FOREIGN_OBJECT_TAKEN_FOR_OWN
#define made(x) (tgt[x].uid != 0)
#else
#define made(x) (tgt[x].uid && tgt[x].mgr)
#endif
#endif

/* mutate.Change.observeWrite, createStrategy.Observe, deleteStrategy.Observe */
#ifdef M_OBSERVE_TRUSTS_RESOURCE_VERSION_ALONE
#define seenas NOTAPPLIED
#else
#define seenas (tgt[i].mgr -> APPLIED : ((tgt[i].val == NEW || tgt[i].val == before(i)) -> NOTAPPLIED : DIVERGED))
#endif
inline observe() {
	d_step {
		if
		:: kind(i) == PATCH && tgt[i].uid != images[t.ref].uid[i] -> found = DIVERGED
		:: kind(i) == PATCH && tgt[i].uid == images[t.ref].uid[i] && tgt[i].n == images[t.ref].n[i] -> found = NOTAPPLIED
		:: kind(i) == PATCH && tgt[i].uid == images[t.ref].uid[i] && tgt[i].n != images[t.ref].n[i] -> found = seenas
		:: kind(i) == CREATE -> found = (made(i) -> APPLIED : NOTAPPLIED)
		:: kind(i) == DELETE -> found = (tgt[i].uid == images[t.ref].uid[i] -> NOTAPPLIED : APPLIED)
		fi
	}
}

/* engine.openChanges, engine.openUndos: which intents the next checkpoint opens. */
inline open() {
	if
	:: nx.phase == COMMITTING ->
		if
		:: nx.st[0] == I_PREPARED -> nx.st[0] = I_COMMITTING; if :: WINDOW > 1 -> nx.st[1] = I_COMMITTING :: else fi
		:: nx.st[0] != I_PREPARED && nx.st[1] == I_PREPARED && (WINDOW > 1 || nx.st[0] == I_COMMITTED) -> nx.st[1] = I_COMMITTING
		:: else
		fi
	:: nx.phase == ROLLINGBACK && nx.st[0] != I_COMMITTING && nx.st[1] != I_COMMITTING ->
		if
		:: nx.st[1] == I_COMMITTED -> nx.st[1] = I_ROLLINGBACK; if :: WINDOW > 1 && nx.st[0] == I_COMMITTED -> nx.st[0] = I_ROLLINGBACK :: else fi
		:: nx.st[1] != I_COMMITTED && nx.st[0] == I_COMMITTED && (WINDOW > 1 || nx.st[1] != I_ROLLINGBACK) -> nx.st[0] = I_ROLLINGBACK
		:: else
		fi
	:: else
	fi
}

/* engine.saga.recordOver */
inline recordover() {
	i = 0;
	do
	:: i < ITEMS ->
		if
		:: known[i] == OVER && nx.st[i] == I_COMMITTING -> nx.st[i] = I_COMMITTED
		:: known[i] == OVER && nx.st[i] == I_ROLLINGBACK -> nx.st[i] = I_ROLLEDBACK
		:: else
		fi;
		i++
	:: else -> break
	od;
	i = 0
}

/* engine.saga.recordRollback: intents for which nothing was sent are withdrawn. */
#ifdef M_WHAT_WAS_SENT_IS_WITHDRAWN
#define withdrawn(x) (nx.st[x] == I_COMMITTING)
#else
#define withdrawn(x) (nx.st[x] == I_COMMITTING && known[x] == UNSENT)
#endif
inline turn() {
	nx.phase = ROLLINGBACK;
	if :: withdrawn(0) -> nx.st[0] = I_PREPARED :: else fi;
	if :: withdrawn(1) -> nx.st[1] = I_PREPARED :: else fi
}

/* engine.saga.settleTime: no request for the item can land any more, and whoever has not heard of the
 * Transaction since has to look before it sends something. */
#ifdef M_NO_SETTLING
#define settle(cond) true
#else
#define settle(cond) atomic { cond -> timely[0] = 0; timely[1] = 0 }
#endif
#define landed(x) (!(late.op && late.op != STATUS && late.item == x))

/* mutate.restoring: values are restored once. */
#define mayrestore(x) (tgt[x].uid == images[t.ref].uid[x] && !restored)

#ifdef M_UNDO_IN_LIST_ORDER
#define FIRSTUNDO 0
#define SECONDUNDO 1
#else
#define FIRSTUNDO 1
#define SECONDUNDO 0
#endif

proctype janusd(byte c) tracked {
	Record t;  /* saga.txn: the Transaction as the API server last stored it, as far as this process knows */
	Record nx; /* what it is about to write */
	byte known[ITEMS]; /* plan.Known: what is in flight */
	bit undone[ITEMS]; /* memory.Undone */
	bit mine;          /* memory.Wrote: this process has written t */
	bit doubt;         /* memory.Doubt: another process may have a request under way */
	byte i, op, u, v, res, found, then;
	bit met;  /* a conflict was met: the item cannot be rolled back */
	bit waited; /* and was met again after the settle time */
	bit unknown;       /* a checkpoint of this process got no answer */
	bit restored; /* the values are, as far as this attempt knows: what has become of them since is another client's */
	bit again; /* a request is repeated, so the intent is taken over first */

	/* engine.Engine.Run, memory.All.Recall: the Transaction is read; what is in flight holds as long as
	 * nobody else has written the status. */
start:	atomic {
		c == 0 || begun -> begun = 1; /* they are alike: one of them is the first */
		copy(t, txn); creating[c] = 0; looked[c] = 0; fresh[c] = 1; timely[c] = 1;
		if
#ifdef M_CHECKPOINT_OF_UNKNOWN_OUTCOME_NOT_TAKEN_OVER
		:: last == c -> mine = 1
#else
		:: last == c -> mine = !unknown /* a checkpoint may be under way whose outcome is not known */
#endif
		:: else ->
			mine = 0; doubt = 1; unknown = 0;
#ifndef M_IN_FLIGHT_KEPT_AFTER_A_TAKEOVER
			known[0] = UNKNOWN; known[1] = UNKNOWN;
#endif
			undone[0] = undone[0] && KIND0 != CREATE && KIND0 != DELETE; undone[1] = undone[1] && KIND1 != CREATE && KIND1 != DELETE
		fi;
		i = 0; op = 0; u = 0; v = 0; res = 0; found = 0; then = DECIDE; met = 0; waited = 0; restored = 0; again = 0;
		nx.phase = 0; nx.st[0] = 0; nx.st[1] = 0; nx.finalizer = 0; nx.ref = 0;
		may_die()
	};

	/* plan.Decide */
decide:	atomic {
		i = 0; op = 0; u = 0; v = 0; res = 0; found = 0; then = DECIDE; met = 0; waited = 0; restored = 0; again = 0;
		if
		:: waits && !ended(t.phase) -> waits--; goto pause
		:: ended(t.phase) -> goto tidy
		:: OVERDUE && (t.phase == PREPARING || t.phase == PREPARED) -> next(); nx.phase = FAILING; goto store /* engine.ending.fail */
		:: t.phase == PREPARING -> goto prepare
		:: t.phase == FAILING -> goto failed
		:: t.phase == PREPARED -> next(); nx.phase = COMMITTING; open(); goto store /* committing.begin */
		:: t.phase == COMMITTING ->
			if
			:: (t.st[0] == I_COMMITTED || known[0] == OVER) && (t.st[1] == I_COMMITTED || known[1] == OVER) -> goto finish /* plan.nothingLeft */
			:: else ->
				if
				:: OVERDUE -> next(); recordover(); turn(); goto store /* plan.mustStop, as spec.timeout is over; saga.startRollback */
				:: true ->
					if
					:: t.st[0] == I_COMMITTING && known[0] != OVER -> i = 0
					:: !(t.st[0] == I_COMMITTING && known[0] != OVER) && t.st[1] == I_COMMITTING && known[1] != OVER -> i = 1
					:: else -> next(); recordover(); open(); goto store /* plan.Record, plan.Open */
					fi;
					if
					:: anyover -> next(); recordover(); open(); goto store /* InFlight.Due */
					:: known[i] == UNSENT -> goto do_it
					:: known[i] != UNSENT -> goto resolve
					fi
				fi
			fi
		:: t.phase == ROLLINGBACK -> /* plan.decideRollingBack */
			if
			:: t.st[1] == I_COMMITTING -> i = 1; goto settling
			:: t.st[1] != I_COMMITTING && t.st[0] == I_COMMITTING -> i = 0; goto settling
			:: else
			fi;
			if
			:: t.st[FIRSTUNDO] == I_ROLLINGBACK && known[FIRSTUNDO] != OVER -> i = FIRSTUNDO
			:: !(t.st[FIRSTUNDO] == I_ROLLINGBACK && known[FIRSTUNDO] != OVER) && t.st[FIRSTUNDO] != I_COMMITTED && t.st[SECONDUNDO] == I_ROLLINGBACK && known[SECONDUNDO] != OVER -> i = SECONDUNDO
			:: else ->
				if
				:: anyover || t.st[0] == I_COMMITTED || t.st[1] == I_COMMITTED -> next(); recordover(); open(); goto store
				:: else -> goto final /* ending.finishUndo */
				fi
			fi;
			if
			:: anyover -> next(); recordover(); open(); goto store
			:: goto undo
			fi
		fi
	};

	/* engine.preparing.prepare */
prepare: atomic {
		if
		:: !mine -> next(); then = PREPARE; goto store /* saga.takeOver */
		:: else
		fi
	};
taken:	atomic { images[c].uid[0] = tgt[0].uid; images[c].n[0] = tgt[0].n; images[c].val[0] = tgt[0].val }; /* wiring reads one target after the other */
	atomic {
		images[c].uid[1] = tgt[1].uid; images[c].n[1] = tgt[1].n; images[c].val[1] = tgt[1].val;
		if
		:: !fresh[c] && !timely[c] -> forgetimages(c); goto start
		:: else
		fi;
		next();
		if /* mutate: Strategy.Admit */
		:: (KIND0 == CREATE) != (images[c].uid[0] == 0) || (KIND1 == CREATE) != (images[c].uid[1] == 0) -> nx.phase = FAILING
		:: else ->
			images[c].stored = 1; /* snapshot: saved before the status names them */
			nx.ref = c; nx.st[0] = I_PREPARED; nx.st[1] = I_PREPARED;
			if /* engine.saga.recordOpening */
			:: nx.phase = COMMITTING; open()
			:: nx.phase = PREPARED /* it is not to go on for now */
			fi
		fi;
		goto store
	};

	/* engine.committing.resolve: an open intent that this process did not record, or whose outcome it does not know */
resolve: atomic {
		observe();
		if
		:: found == APPLIED -> known[i] = OVER; looked[c] = looked[c] || kind(i) == CREATE && !mine; goto decide
		:: found == DIVERGED -> goto failitem
		:: found == NOTAPPLIED -> goto do_it
		fi
	};

	/* engine.committing.send, mutate: Strategy.Do */
do_it:	atomic {
		if
		:: kind(i) == CREATE && !noeffect(i) ->
			settle(landed(i) && !looked[1 - c]); /* saga.mayCreate */
			observe(); /* what it waited for has landed, or never does */
			if :: found == APPLIED -> known[i] = OVER; goto decide :: else -> found = 0 fi
		:: !(kind(i) == CREATE && !noeffect(i))
		fi;
		if :: known[i] == UNSENT -> known[i] = INEFFECTIVE :: else fi; /* plan.Sent */
		op = kind(i); u = images[t.ref].uid[i]; v = images[t.ref].n[i]; creating[c] = (op == POST); goto fence
	};
	/* engine.saga.confirm, as Fences.Confirm: an intent that another process may have recorded is taken over. */
fence:	atomic {
		if
#ifdef M_INTENT_NOT_TAKEN_OVER
		:: again -> next(); then = SEND; goto store
		:: !again -> goto send
#else
		:: again || !mine -> next(); then = SEND; goto store
		:: !(again || !mine) -> goto send
#endif
		fi
	};

	/* One request. Journal.Unwritten comes before it if it may be late. */
send:	atomic {
		again = 0;
#ifndef M_HUNG_PROCESS_GOES_ON
		if :: !timely[c] && !fresh[c] -> goto start :: else -> timely[c] = 1 fi;
#endif
		if
		:: land(op, i, u, v, found); res = (found -> OK : STALE); found = 0; v = tgt[i].n; u = tgt[i].uid
		:: losts -> losts--; printf("the answer is lost\n"); land(op, i, u, v, found); found = 0; res = GONE
		:: lates && !late.op && lateof(i) && lateby(c) -> lates--; printf("request %d for item %d is late\n", op, i); late.op = op; late.item = i; late.uid = u; late.n = v; res = GONE
		:: denied && isdo(op) -> denied--; printf("request is refused\n"); res = NO
		:: waits -> waits--; res = BUSY
		fi;
		creating[c] = 0;
		may_die();
		if
		:: isdo(op) && res == OK -> known[i] = OVER; goto decide
		:: isdo(op) && res == STALE && op == POST -> goto whose
		:: isdo(op) && res == STALE && op != POST -> goto refresh
		:: isdo(op) && res == NO ->
			if
			:: noeffect(i) -> goto reject
			:: !noeffect(i) -> goto failitem
			fi
		:: op == RESTORE && res == OK -> restored = 1; op = OWNERS; goto send
		:: op == REMAKE && res == OK -> op = OWNERS; goto send
		:: op == UNMAKE && res == OK -> goto undo
		:: op == OWNERS && res == OK && t.phase == COMMITTING -> goto finish
		:: op == OWNERS && res == OK && t.phase == ROLLINGBACK && !met -> goto rolled
		:: op == OWNERS && res == OK && t.phase == ROLLINGBACK && met -> goto giveup
		:: !isdo(op) && res == STALE && t.phase == COMMITTING -> goto finish
		:: !isdo(op) && res == STALE && t.phase == ROLLINGBACK -> met = 0; goto undo
#ifdef M_LOST_REPLY_MEANS_REFUSED
		:: isdo(op) && res == GONE -> goto reject
#else
		:: isdo(op) && res == GONE -> unsure(); goto start
#endif
		:: !isdo(op) && res == GONE -> unsure(); goto start
		:: res == BUSY -> goto pause
		:: res == BUSY -> goto start /* it is on record */
		fi
	};
	/* engine.retry.recordWait */
pause:	atomic { next(); recordover(); then = START; goto store };

	/* mutate.write.refresh: what a request met that was stale */
refresh: atomic {
		if
		:: tgt[i].uid == images[t.ref].uid[i] && tgt[i].val == before(i) && !tgt[i].mgr ->
			v = tgt[i].n; u = tgt[i].uid; again = 1; goto fence /* only the status was written */
		:: else -> goto refused
		fi
	};
	/* mutate.Change.whose: there is an object already */
whose:	atomic {
		if
		:: made(i) -> known[i] = OVER; goto decide
		:: tgt[i].uid == 0 -> goto start
		:: else -> goto refused
		fi
	};
	/* engine.committing.refused: a conflict proves nothing if an earlier request may have landed. */
refused: atomic {
		if
		:: noeffect(i) -> goto reject
		:: !noeffect(i)
		fi
	};
	atomic {
		observe();
		if
		:: found == APPLIED -> known[i] = OVER; goto decide
		:: found != APPLIED -> goto failitem
		fi
	};
	/* engine.saga.failItem: the rollback finds out what became of it */
failitem: atomic { next(); recordover(); turn(); goto store };
	/* engine.committing.reject */
reject:	atomic { next(); nx.st[i] = I_REJECTED; recordover(); turn(); goto store };

	/* engine.rollback.settle */
settling: atomic {
		observe();
		if
		:: found == NOTAPPLIED -> settle(landed(i)); observe() /* one answer may be of before the change */
		:: found != NOTAPPLIED
		fi;
		next();
		if
#ifdef M_UNDONE_ONLY_IF_RECORDED
		:: found == APPLIED -> nx.st[i] = I_REJECTED
#else
		:: found == APPLIED -> nx.st[i] = I_COMMITTED
#endif
		:: found == NOTAPPLIED -> nx.st[i] = I_REJECTED
		:: found == DIVERGED -> nx.st[i] = I_UNRESOLVED; recordover(); open() /* saga.record */
		fi;
		goto store
	};

	/* engine.rollback.undoItem, and mutate: Strategy.Undo */
undo:	atomic {
		if
		:: undone[i] -> known[i] = OVER; goto decide
		:: !undone[i] && kind(i) == CREATE && doubt -> settle(landed(i)); doubt = 0
		:: !undone[i] && kind(i) == DELETE && !noeffect(i) -> settle(landed(i)) /* saga.mayCreate */
		:: else
		fi
	};
	atomic { /* the target is read */
		if :: known[i] == UNSENT -> known[i] = INEFFECTIVE :: else fi; /* plan.TakenUp */
		u = tgt[i].uid; v = tgt[i].n; met = 0;
		if
		:: kind(i) == PATCH -> /* mutate.Change.restore: the values, then the owners */
			if
			:: tgt[i].uid != images[t.ref].uid[i] -> goto giveup
			:: tgt[i].uid == images[t.ref].uid[i] && restored && tgt[i].mgr -> op = OWNERS
			:: tgt[i].uid == images[t.ref].uid[i] && restored && !tgt[i].mgr -> goto rolled
			:: mayrestore(i) && tgt[i].val == NEW -> op = RESTORE
#ifdef M_CONFLICTS_OVERWRITTEN
			:: mayrestore(i) && tgt[i].val == THEIRS && before(i) != THEIRS -> op = RESTORE
#else
			:: mayrestore(i) && tgt[i].val == THEIRS && before(i) != THEIRS && tgt[i].mgr -> op = OWNERS; met = 1
			:: mayrestore(i) && tgt[i].val == THEIRS && before(i) != THEIRS && !tgt[i].mgr -> goto giveup
#endif
#ifdef M_OWNERS_ONLY_WITH_VALUES
			:: mayrestore(i) && tgt[i].val == before(i) -> goto rolled
#else
			:: mayrestore(i) && tgt[i].val == before(i) && tgt[i].mgr -> op = OWNERS
			:: mayrestore(i) && tgt[i].val == before(i) && !tgt[i].mgr -> goto rolled
#endif
			fi
		:: kind(i) == CREATE -> /* createStrategy.Undo */
			if
			:: !made(i) -> goto rolled
#ifdef M_FOREIGN_FIELDS_DELETED_WITH_OURS
			:: made(i) -> op = UNMAKE
#else
			:: made(i) && tgt[i].val == THEIRS -> goto giveup
			:: made(i) && tgt[i].val != THEIRS -> op = UNMAKE
#endif
			fi
		:: kind(i) == DELETE -> /* deleteStrategy.Undo */
			if
			:: tgt[i].uid == images[t.ref].uid[i] -> goto rolled
			:: tgt[i].uid == 0 -> op = REMAKE
			:: tgt[i].uid != 0 && tgt[i].uid != images[t.ref].uid[i] && tgt[i].mgr -> op = OWNERS
			:: tgt[i].uid != 0 && tgt[i].uid != images[t.ref].uid[i] && !tgt[i].mgr && tgt[i].val == before(i) -> goto rolled
#ifdef M_FOREIGN_SUCCESSOR_TAKEN_FOR_OWN
			:: tgt[i].uid != 0 && tgt[i].uid != images[t.ref].uid[i] && tgt[i].val == THEIRS && before(i) != THEIRS && !tgt[i].mgr -> goto rolled
#else
			:: tgt[i].uid != 0 && tgt[i].uid != images[t.ref].uid[i] && tgt[i].val == THEIRS && before(i) != THEIRS && !tgt[i].mgr -> goto giveup
#endif
			fi
		fi;
		goto fence
	};
rolled:	atomic {
		undone[i] = 1; known[i] = OVER;
		if
		:: kind(i) == DELETE -> next(); recordover(); open(); goto store /* what was re-created is recorded at once */
		:: else -> goto decide
		fi
	};
	/* engine.rollback.giveUpIf: not before every compensation that was sent has landed */
giveup:	atomic {
		if
		:: !noeffect(i) && !waited -> settle(landed(i)); waited = 1; goto undo
		:: else
		fi;
		next();
#ifdef M_UNRESOLVED_COUNTS_AS_ROLLED_BACK
		nx.st[i] = I_ROLLEDBACK;
#else
		nx.st[i] = I_UNRESOLVED;
#endif
		recordover(); open(); goto store
	};

	/* engine.ending.finish: what is over is recorded, then the fields are handed over (mutate.HandOver). */
finish:	atomic {
#ifndef M_WHAT_IS_OVER_IS_TAKEN_FOR_RECORDED
		if :: anyover -> next(); recordover(); goto store :: else fi;
#endif
		if
		:: tgt[0].uid && tgt[0].mgr -> i = 0; op = OWNERS; u = tgt[0].uid; v = tgt[0].n; goto send
		:: tgt[1].uid && tgt[1].mgr -> i = 1; op = OWNERS; u = tgt[1].uid; v = tgt[1].n; goto send
		:: else -> goto final
		fi
	};

	/* engine.ending.fail: that it fails is on record before anything is released. */
failed:
	/* engine.ending.end: before-images, finalizer, and the final phase last */
final:
#ifdef M_FINAL_PHASE_FIRST
	skip;
#else
	atomic {
		if
		:: waits -> waits--; goto pause
		:: fresh[c] -> images[1 - t.ref].stored = 0; if :: t.phase != ROLLINGBACK -> images[t.ref].stored = 0 :: else fi
		:: !fresh[c] -> goto start
		fi;
		may_die()
	};
	atomic {
		if
		:: t.finalizer -> next(); nx.finalizer = 0; then = FINALLY; goto store /* saga.removeFinalizer */
		:: else
		fi
	};
#endif
last_write: atomic {
		next(); recordover();
		if
		:: t.phase == COMMITTING -> nx.phase = COMMITTED
		:: t.phase == FAILING -> nx.phase = FAILED
		:: t.phase == ROLLINGBACK -> nx.phase = ((t.st[0] == I_UNRESOLVED || t.st[1] == I_UNRESOLVED) -> FAILED : ROLLEDBACK)
		fi;
		goto store
	};

	/* engine.saga.checkpoint, wiring.Journal.Checkpoint: a compare-and-swap */
store:	atomic {
		if
#ifdef M_STATUS_WRITTEN_BLINDLY
		:: true ->
#else
		:: fresh[c] ->
#endif
			write(nx); last = c; mine = 1; unknown = 0; fresh[c] = 1; timely[c] = 1; looked[c] = 0;
			/* memory.Flight.Recorded: of an intent that it has recorded nothing was sent yet. */
			if :: nx.st[0] != t.st[0] -> known[0] = ((nx.st[0] == I_COMMITTING || nx.st[0] == I_ROLLINGBACK) -> UNSENT : UNKNOWN) :: else fi;
			if :: nx.st[1] != t.st[1] -> known[1] = ((nx.st[1] == I_COMMITTING || nx.st[1] == I_ROLLINGBACK) -> UNSENT : UNKNOWN) :: else fi;
			copy(t, nx)
		:: fresh[c] && losts -> losts--; printf("the answer is lost\n"); write(nx); last = NOBODY; unknown = 1; may_die(); goto start
		:: fresh[c] && lates && !late.op && lateof(STATUS) && lateby(c) && (t.phase != PREPARING || nx.phase == PREPARING || nx.phase == FAILING) ->
			lates--; printf("status is late\n"); late.op = STATUS; copy(laterec, nx); unknown = 1; may_die(); goto start
		:: !fresh[c] -> goto start
		fi;
		nx.phase = 0; nx.st[0] = 0; nx.st[1] = 0; nx.finalizer = 0; nx.ref = 0;
		may_die();
		if
		:: then == SEND -> then = DECIDE; goto send
		:: then == FINALLY -> then = DECIDE; goto last_write
		:: then == PREPARE -> then = DECIDE; goto taken
		:: then == START -> goto start
		:: then == DECIDE -> goto decide
		fi
	};

	/* A crash: all that is not stored is lost, and another process starts. */
died:	atomic {
		known[0] = UNKNOWN; known[1] = UNKNOWN; undone[0] = 0; undone[1] = 0; mine = 0; doubt = 1; unknown = 0;
		if :: last == c -> last = NOBODY :: else fi;
		fresh[c] = 0; timely[c] = 0; goto start
	};

	/* engine.cleanup.removeLeftovers: what this process, or one that has died, has made too late */
tidy:	atomic {
		if
		:: doubt -> settle(landed(0) && landed(1))
		:: !doubt
		fi;
		known[0] = UNKNOWN; known[1] = UNKNOWN; undone[0] = 0; undone[1] = 0; mine = 0; doubt = 0;
		images[1 - t.ref].stored = 0;
		if :: !kept(t) -> images[t.ref].stored = 0 :: else fi;
		quiet++;
		/* 7: once nobody has anything more to do, nothing is left but the before-images of a rollback. */
		assert(nothing_left || quiet < 2 || (!images[1 - t.ref].stored && images[t.ref].stored == kept(t)));
		t.phase = 0; t.st[0] = 0; t.st[1] = 0; t.finalizer = 0; t.ref = 0; timely[c] = 0; fresh[c] = 0
	};
}

init {
	atomic {
		txn.phase = PREPARING; txn.finalizer = 1;
		begin();
		tgt[0].n = 1; tgt[1].n = 1;
		if :: KIND0 != CREATE -> tgt[0].uid = 1; tgt[0].val = OLD :: else fi;
		if :: KIND1 != CREATE -> tgt[1].uid = 1; tgt[1].val = OLD :: else fi;
		run network(); run other(); run janusd(0);
		if :: PROCESSES == 2 -> run janusd(1) :: else -> quiet = 1 fi
	}
}

/* 8, termination: once faults stop, and one process is left, the Transaction ends. Faults stop by
 * themselves here, because there are only so many. */
#ifdef LIVE
ltl ends { <> ended(txn.phase) }
#endif
