/* geo-removal.pml - removal of an account's rows from a stamp, beside a copy of the account that begins there anew (../geo-shipping.md "Removal").
 * One account, one PartitionName with two rows, one range whose owner changes. The account is removed, follows again, is removed again, and so on.
 * The partition manager M keeps the account's role in one durable row. A partition server hears of it late, and removes by what it has heard last.
 * Every change of the role has a number that rises; the range keeps the highest number it was told (tenure), in memory and durably.
 * Removal deletes the rows in two transactions. A shipment of an earlier copy may be late.
 * Rules (off with -DNO_<rule>):
 *   CHECK    a removal deletes nothing if the range knows a higher number than the removal's
 *   FENCE    before the account follows again, every range is told the number of that
 *   DURABLE  the number is durable before it counts: a later owner has it
 *   PAIRED   the range takes nothing that was shipped to an earlier copy
 *   MARKER   the marker (version of the PartitionName) is deleted with the first rows
 * P1  when a copy is seeded and everything is shipped, it has what the primary has
 */
#ifndef ROUNDS
#define ROUNDS 4		/* changes of the role: odd ones remove, even ones follow */
#endif
#ifndef OWNERS
#define OWNERS 2		/* changes of the owner */
#endif
#ifndef WRITES
#define WRITES 2
#endif

/* The primary's state, and this stamp's: value of each row (0: none), version. */
byte p1 = 1, p2 = 1, pver = 1;
byte v1 = 1, v2 = 1, marker = 1;
bool following = true; byte num = 0;		/* the role's row: number of its last change */
byte mem = 0, ten = 0;				/* the range: in memory, durable */
byte heard = 0; bool heardRemoved = false;	/* what the server of the range has heard of the role */
byte owners = 0, writes = 0;
bool seeded = true; byte shipped = 1;		/* the sender: version that was acknowledged */
byte fencing = 0;				/* M tells the ranges of this number */
/* A shipment that is late: of which copy, version, values. */
bool late = false, wasLate = false; byte lateNum, lateVer, late1, late2;
byte half = 0;					/* a removal has deleted the first row, and this is its number */

#ifdef NO_CHECK
#define CHECK_ true
#else
#define CHECK_ (heard >= mem)
#endif
#ifdef NO_DURABLE
#define RECORD_(n) skip
#else
#define RECORD_(n) ten = n
#endif
#ifdef NO_PAIRED
#define PAIRED_ true
#else
#define PAIRED_ (lateNum >= mem)
#endif
#ifdef NO_MARKER
#define MARKER_ skip
#else
#define MARKER_ marker = 0
#endif

proctype Manager() {
end:	do
	:: d_step { following && num < ROUNDS -> num++; following = false; seeded = false }			/* removed */
#ifdef NO_FENCE
	:: d_step { !following && num < ROUNDS -> num++; following = true }
#else
	:: d_step { !following && fencing == 0 && num < ROUNDS -> fencing = num + 1 }
	:: d_step { fencing > 0 && mem < fencing -> mem = fencing }
	:: d_step { fencing > 0 && mem == fencing && ten < fencing -> RECORD_(fencing);
#ifdef NO_DURABLE
		num = fencing; following = true; fencing = 0
#endif
		}
	:: d_step { fencing > 0 && mem == fencing && ten == fencing -> num = fencing; following = true; fencing = 0 }
#endif
	od
}

proctype Server() {
end:	do
	:: d_step { heard != num || heardRemoved == following -> heard = num; heardRemoved = !following }
	:: d_step { owners < OWNERS -> owners++; mem = ten; half = 0 }			/* another server: it may have heard as little */
	/* removal: the number is recorded first, then the rows go, in two transactions */
	:: d_step { heardRemoved && heard > mem && (v1 > 0 || v2 > 0 || marker > 0) -> mem = heard }
	:: d_step { heardRemoved && heard == mem && ten < mem -> ten = mem }
	:: d_step { heardRemoved && CHECK_ && (mem == ten || heard < mem) && (v1 > 0 || marker > 0) -> v1 = 0; MARKER_; half = heard }
	:: d_step { heardRemoved && CHECK_ && half == heard && v1 == 0 && v2 > 0 -> v2 = 0; half = 0 }
	:: d_step { heardRemoved && CHECK_ && half == 0 && v1 == 0 && v2 > 0 -> v2 = 0 }
	od
}

proctype Shipping() {
end:	do
	:: atomic { writes < WRITES -> writes++; pver++; if :: p1 = pver; p2 = pver :: p1 = 0; p2 = 0 fi }
	/* seeding: the state of the primary replaces what is here, if it is newer */
	:: d_step { following && !seeded && num >= mem ->
		if :: pver > marker -> if :: (p1 > 0 || v1 > 0 || v2 > 0) -> v1 = p1; v2 = p2; marker = pver :: else fi :: else fi; seeded = true; shipped = pver }
	:: d_step { following && seeded && pver > shipped && num >= mem -> if :: pver > marker -> v1 = p1; v2 = p2; marker = pver :: else fi; shipped = pver }
	:: d_step { following && seeded && !wasLate -> late = true; wasLate = true; lateNum = num; lateVer = pver; late1 = p1; late2 = p2 }
	:: d_step { late && following && PAIRED_ && lateVer > marker -> v1 = late1; v2 = late2; marker = lateVer; late = false }
	:: d_step { late -> late = false }
	od
}

proctype Judge() { timeout -> assert(!following || !seeded || (v1 == p1 && v2 == p2)) }	/* P1 */

init { atomic { run Manager(); run Server(); run Shipping(); run Judge() } }
