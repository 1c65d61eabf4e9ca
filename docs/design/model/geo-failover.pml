/* geo-failover.pml - one account on two stamps and the location service L: planned failover, abort, forced failover, failback (../geo.md).
 * Every operation has a number (op); it is the role epoch of whom it promotes. L records a step before it acts on it, and after a crash goes on
 * from the record. A command, once sent, arrives at any later time, any number of times, or never; answers likewise. Each stamp keeps role,
 * role epoch and the last command it obeyed in one durable row. Its front-ends cache the role for a bounded time.
 *   planned:  DRAIN(op) at the primary | all it acknowledged is shipped | PROMOTE(op) at the secondary | DEMOTE(op) at the old primary
 *   abort:    before PROMOTE was recorded: UNDRAIN(op) at the primary
 *   forced:   PROMOTE(op) at the secondary | DEMOTE(op) at the old primary, with the length that PROMOTE found: the rest is kept aside | seed
 * Writes are numbers in one log for each stamp (one PartitionName: order within it and over splits is geo-shipping.pml).
 * Rules (off with -DNO_<rule>):
 *   ORDER    a stamp obeys no command that is older than the last it obeyed (off: it compares the role epoch only)
 *   CACHES   DRAIN and DEMOTE are answered when no front-end acts on the old role any more
 *   RECORD   L records a step before the first command of it is sent
 *   SHIPEP   the secondary applies what was shipped under its own role epoch only
 *   POINT    what is kept aside begins where PROMOTE found the secondary (off: where the old primary was acknowledged last, which it lost)
 *   ASIDE    the old primary's log is replaced only after what only it has is kept aside
 * With -DLOST=1 a stamp other than the primary's may be declared lost, at any step: L goes on without it, the account is alone at L's primary, and
 * the lost stamp is owed EXPEL(op), which takes every role from it (demote and remove in the code). It gets it when it comes back, or never.
 *   OWED     what a lost stamp was not told is recorded before L goes on without it
 * P1  a planned promotion finds every acknowledged write
 * P2  no stamp acknowledges a write after it has answered DEMOTE
 * P3  at any time every acknowledged write is in the newest primary's log, in the log of a stamp that was not seeded since, or kept aside
 * P4  what is kept aside is what the new primary does not have
 * P5  at the end, with L idle, L's primary takes writes
 * P6  what a secondary has is a prefix of what its primary has
 * P7  a lost stamp that has answered EXPEL takes no writes, and has no role when everything is told
 * P1, P3 and P4 do not hold for what was lost with the stamp: they are asked until one is declared lost.
 */
#ifndef N
#define N 3			/* writes */
#endif
#ifndef OPS
#define OPS 3			/* operations */
#endif
#ifndef FORCED
#define FORCED 1
#endif
#ifndef LOST
#define LOST 0
#endif
#define A 0
#define B 1
mtype = { primary, drained, secondary, unseeded, removed, idle, draining, undraining, promoting, demoting };

mtype role[2]; byte ep[2], seen[2];	/* the durable row; seen: 4 * op + phase */
bool front[2];				/* some front-end takes writes */
byte size[2], written; byte log[6];	/* log[3 * s + i] */
byte acked;				/* bits: acknowledged writes */
byte aside;				/* bits */
byte cursor;				/* of the primary: acknowledged by the secondary */
bool demotedAnswered[2];

/* L: durable */
mtype step = idle; byte op = 0, lprim = A, target; bool force; byte point; byte forcedOps;

bool gone = false; byte lost, owed = 0; bool sExpel = false, aExpel = false;	/* L: durable, but for the last two */

/* Commands sent and answers given, by op. */
bool sDrain[4], sUndrain[4], sPromote[4], sDemote[4], aDrain[4], aUndrain[4], aPromote[4], aDemote[4]; byte to[4];
/* One shipment that is late. */
bool late; byte lateTo, lateEp, lateAt, lateId;

#define other(s) (1 - (s))
#define bit(i) (1 << (i))

#ifdef NO_ORDER
#define newer(s, o, phase) (o >= ep[s])
#else
#define newer(s, o, phase) (4 * (o) + (phase) >= seen[s])
#endif
#ifdef NO_RECORD
#define PROMOTE_ sPromote[op] = true
#else
#define PROMOTE_ step = promoting
#endif
#ifdef NO_SHIPEP
#define SHIPEP_ true
#else
#define SHIPEP_ (lateEp == ep[s])
#endif
#ifdef NO_ASIDE
#define ASIDE_ true
#else
#define ASIDE_ aDemote[ep[s]]
#endif
#ifdef NO_POINT
#define ASIDE_FROM cursor
#else
#define ASIDE_FROM point
#endif
#ifdef NO_OWED
#define OWE_(o) owed = 0
#else
#define OWE_(o) owed = o
#endif
#define leaveOut(stamp) gone = true; lost = stamp
#ifdef NO_CACHES
#define quiet(s) true
#else
#define quiet(s) (!front[s])
#endif

#define COMMANDS(o) \
	:: d_step { sDrain[o] && to[o] == other(s) && newer(s, o, 1) && role[s] == primary -> role[s] = drained; seen[s] = 4 * o + 1 } \
	:: d_step { sDrain[o] && to[o] == other(s) && role[s] == drained && quiet(s) && !aDrain[o] -> aDrain[o] = true } \
	:: d_step { sUndrain[o] && to[o] == other(s) && newer(s, o, 2) && (role[s] == drained || role[s] == primary) && \
		!(aUndrain[o] && role[s] == primary) -> role[s] = primary; seen[s] = 4 * o + 2; aUndrain[o] = true } \
	:: d_step { sPromote[o] && to[o] == s && newer(s, o, 2) && role[s] == secondary -> \
		ids(s, mine); assert(gone || forcedOps > 0 || (acked & mine) == acked); mine = 0;		 \
		if :: !aPromote[o] -> point = size[s] :: else fi; \
		role[s] = primary; ep[s] = o; seen[s] = 4 * o + 2; aPromote[o] = true; demotedAnswered[s] = false; cursor = 0 } \
	:: d_step { sDemote[o] && to[o] == other(s) && newer(s, o, 3) && ep[s] < o -> role[s] = unseeded; ep[s] = o; seen[s] = 4 * o + 3 } \
	:: d_step { sDemote[o] && to[o] == other(s) && role[s] == unseeded && ep[s] == o && quiet(s) && !aDemote[o] -> \
		i = ASIDE_FROM; do :: i < size[s] -> aside = aside | bit(log[3 * s + i]); i++ :: else -> break od; i = 0; \
		aDemote[o] = true; demotedAnswered[s] = true; \
		ids(other(s), all); assert(gone || (aside & all) == 0); all = 0 }				

inline ids(s, all) { all = 0; i = 0; do :: i < size[s] -> all = all | bit(log[3 * s + i]); i++ :: else -> break od; i = 0 }

proctype Stamp(byte s) {
	byte i, all, mine;
end:	do
	/* front-ends: what they know of the role is at most one step old, for a bounded time */
	:: d_step { front[s] != (role[s] == primary) -> front[s] = (role[s] == primary) }
	:: d_step { front[s] && written < N && size[s] < 3 ->
		assert(!demotedAnswered[s]);							/* P2 */
		assert(!(aExpel && lost == s));							/* P7 */
		log[3 * s + size[s]] = written; size[s]++; acked = acked | bit(written); written++ }
	/* shipping: the next write, which may be late; the acknowledgement may be lost */
	:: atomic { (role[s] == primary || role[s] == drained) && role[other(s)] == secondary && ep[s] == ep[other(s)] && size[other(s)] < size[s] ->
		if
		:: log[3 * other(s) + size[other(s)]] = log[3 * s + size[other(s)]]; size[other(s)]++
		:: !late -> late = true; lateTo = other(s); lateEp = ep[s]; lateAt = size[other(s)]; lateId = log[3 * s + size[other(s)]]
		fi }
	:: d_step { (role[s] == primary || role[s] == drained) && role[other(s)] == secondary && ep[s] == ep[other(s)] && cursor < size[other(s)] -> cursor = size[other(s)] }
	:: d_step { late && lateTo == s && role[s] == secondary && lateAt == size[s] && SHIPEP_ ->
		assert(ep[s] != ep[other(s)] || (size[s] < size[other(s)] && log[3 * other(s) + size[s]] == lateId));	/* P6 */
		log[3 * s + size[s]] = lateId; size[s]++; late = false }
	:: d_step { late -> late = false }
	/* seeding, in one step: the log of the primary replaces what is there */
	:: d_step { role[s] == unseeded && role[other(s)] == primary && ep[other(s)] == ep[s] && quiet(s) && ASIDE_ ->
		i = 0; do :: i < size[other(s)] -> log[3 * s + i] = log[3 * other(s) + i]; i++ :: else -> break od; i = 0;
		size[s] = size[other(s)]; cursor = size[s]; role[s] = secondary;
		ids(s, mine); assert(gone || (acked & (mine | aside)) == acked); mine = 0 }			/* P3 */
	/* commands, however late */
	COMMANDS(1)
	COMMANDS(2)
	COMMANDS(3)
	:: d_step { sExpel && lost == s && newer(s, owed, 3) && role[s] != removed -> role[s] = removed; seen[s] = 4 * owed + 3 }
	:: d_step { sExpel && lost == s && role[s] == removed && quiet(s) && !aExpel -> aExpel = true }
	od
}

/* The location service. A crash between two steps changes nothing: all of it is in the record. */
proctype Location() {
end:	do
	:: atomic { step == idle && !gone && op < OPS -> op++; target = other(lprim); to[op] = target;
		if
		:: step = draining; force = false
		:: forcedOps < FORCED -> step = promoting; force = true; forcedOps++
		fi }
	:: d_step { step == draining && !sDrain[op] -> sDrain[op] = true }
	:: d_step { step == draining && sDrain[op] -> step = undraining }					/* it takes too long */
	:: d_step { step == draining && forcedOps < FORCED && op < OPS -> op++; to[op] = target; step = promoting; force = true; forcedOps++ }
	:: d_step { step == draining && aDrain[op] && cursor == size[lprim] && role[target] == secondary -> PROMOTE_ }
#ifdef NO_RECORD
	:: d_step { step == draining && sPromote[op] -> step = promoting }
#endif
	:: d_step { step == undraining && !sUndrain[op] -> sUndrain[op] = true }
	:: d_step { step == undraining && aUndrain[op] -> step = idle }
	:: d_step { step == promoting && !sPromote[op] -> sPromote[op] = true }
	:: d_step { step == promoting && aPromote[op] -> lprim = target; step = demoting }
	:: d_step { step == demoting && !sDemote[op] -> sDemote[op] = true }
	:: d_step { step == demoting && aDemote[op] -> step = idle }
	/* the stamp that L waits for, or that has the copy, is declared lost */
	:: d_step { LOST && !gone && step == demoting -> leaveOut(other(lprim)); OWE_(op); step = idle }
	:: d_step { LOST && !gone && (step == idle || step == draining || step == promoting) && op < OPS -> op++; to[op] = other(lprim);
		leaveOut(other(lprim)); OWE_(op); step = undraining }		/* unpair */
	:: d_step { gone && owed > 0 && !sExpel -> sExpel = true }
	od
}

proctype Judge() { timeout -> assert(step != idle || role[lprim] == primary);	/* P5 */
	assert(!gone || step != idle || role[lost] == removed) }		/* P7 */

init { atomic {
	role[A] = primary; role[B] = secondary; front[A] = true;
	run Stamp(A); run Stamp(B); run Location(); run Judge()
} }
