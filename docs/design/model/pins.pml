/*
 * Uploads in progress beside the collector of blob data (docs/decisions/0370).
 *
 * Modelled: one extent X of blob data, and an upload that has bytes in it before any row refers to them; the range of the upload's key (U) and,
 * after a split, its sibling (O), which lists X too; owners that are replaced (moves, crashes), each of which forgets its pins; splits and
 * merges; the old owner, which still answers who does not know; collector passes in steps; commits that are decided and applied in two steps;
 * front-ends that renew, die, or are cut off and commit late. Time passes in ticks; a front-end that lives reaches the owner that serves within LATE ticks.
 * Not modelled: several extents, rewriting (it is the pass itself), row data, how a drop is carried out at the stream manager.
 *
 * Properties: S1_lost: a row never refers to an extent that its range dropped. S2_refused: the commit of an upload that was renewed is never
 * refused. S3_kept: what is abandoned is dropped by the first pass after 2 * TERM ticks of calm. S4_anew: what was settled once is dropped by
 * the next pass, however young its owner is.
 *
 * Rules: PIN bytes pin their extent; RENEW front-ends renew; EXPIRE a pin that is not renewed ends; WAIT an owner settles nothing before it has
 * served for WAIT ticks; SEALED only what is sealed; DURABLE settled is recorded; JOIN after a merge only what all that list it have settled;
 * CHECK who lost the lease answers no renewal; ROWORDER places are checked in row order; OVER a pass waits for transactions under way.
 */
#ifndef TERM
#define TERM 3
#endif
#define LATE 1
#ifndef WAIT
#define WAIT 3			/* more than 2 * LATE: an answer to an append may come late, and then a renewal */
#endif
#ifndef CHANGES
#define CHANGES 3		/* takeovers, splits and merges */
#endif
#define U 0
#define O 1

bool live[2], listed[2], settled[2], leaving[2];
byte served[2], pin[2], step[2], seen[2], calmAtStart[2];
bool wasSettled[2];		/* at the start of the pass */
bool sealed, ref, zombie, split, ever[2];
byte changes, calm, heard;
mtype = { none, written, known, deciding, done };
mtype upload = none;
bool front = true;		/* the front-end lives */
bool cut = false;		/* it is cut off for long: renews nothing, and commits late */

#ifdef NO_SEALED
#define SEALED_ true
#else
#define SEALED_ sealed
#endif
#ifdef NO_WAIT
#define WAIT_ true
#else
#define WAIT_ (served[r] >= WAIT)
#endif
#ifdef NO_OVER
#define OVER_ true
#else
#define OVER_ !(r == U && upload == deciding)
#endif

#define active (front && !cut && (upload == written || upload == known || upload == deciding))

/* A new owner: what was in memory is gone. */
inline begin(r) {
	served[r] = 0; leaving[r] = false; pin[r] = 0; step[r] = 0;
#ifdef NO_DURABLE
	settled[r] = false;
#endif
	if :: r == U -> heard = 0; if :: upload == deciding -> upload = known :: else fi :: else fi
}

proctype Time() {
	do
	:: atomic { !(active && heard >= LATE) && (calm < 2 * TERM + 1 || served[U] < TERM || served[O] < TERM || pin[U] > 0 || pin[O] > 0) ->
		byte r = 0;
		do
		:: r < 2 ->
			if :: served[r] < TERM -> served[r]++ :: else fi;
#ifndef NO_EXPIRE
			if :: pin[r] > 0 -> pin[r]-- :: else fi;
#endif
			r++
		:: else -> break
		od;
		r = 0;
		if :: active -> heard++ :: else fi;
		if :: !active && calm <= 2 * TERM -> calm++ :: else fi
	}
	od
}

proctype Front() {
	do
	:: atomic { front && upload == none && !sealed && listed[U] ->	/* the append, at the owner that serves */
		upload = written; heard = 0;
#ifndef NO_PIN
		pin[U] = TERM
#endif
	}
	:: atomic { front && upload == written -> upload = known; heard = 0 }	/* its answer, which may come late */
#ifndef NO_RENEW
	:: atomic { active && (upload == known || upload == deciding) -> pin[U] = TERM; heard = 0 }
#else
	:: atomic { active && (upload == known || upload == deciding) -> heard = 0 }
#endif
#ifdef NO_CHECK
	:: atomic { zombie && front && upload == known -> heard = 0 }
#endif
	/* The commit: decided in row order, then applied. */
	:: atomic { front && upload == known ->
		if
#ifndef NO_ROWORDER
		:: leaving[U] || !listed[U] -> assert(cut /* S2_refused */); upload = none; calm = 0
		:: else -> upload = deciding
#else
		:: upload = deciding
#endif
		fi }
	:: atomic { upload == deciding -> ref = true; upload = done; assert(listed[U] /* S1_lost */) }
	:: atomic { active -> front = false; if :: upload == deciding :: else -> upload = none fi; calm = 0 }
	:: atomic { active -> cut = true; calm = 0 }
	:: atomic { !sealed -> sealed = true; calm = 0 }
	:: atomic { ref -> ref = false; calm = 0 }	/* the blob is deleted */
	od
}

proctype Collector(byte r) {
	do
	/* Pass: settle what may be settled; record it; mark it as leaving. */
	:: atomic { live[r] && listed[r] && step[r] == 0 ->
		calmAtStart[r] = (sealed -> calm : 0); wasSettled[r] = ever[r];
		if
		:: !settled[r] && SEALED_ && pin[r] == 0 && WAIT_ -> settled[r] = true; ever[r] = true
		:: else
		fi;
		if :: settled[r] && sealed -> leaving[r] = true :: else fi;
		step[r] = 1 }
	/* Transactions that began before are over; then the scan. */
	:: atomic { live[r] && step[r] == 1 && OVER_ -> seen[r] = (r == U && ref); step[r] = 2 }
	:: atomic { live[r] && step[r] == 2 ->
		if
		:: leaving[r] && !seen[r] -> listed[r] = false;
			assert(!(r == U && ref) /* S1_lost */)
		:: else ->
			assert(!(sealed && calmAtStart[r] > 2 * TERM && calm > 2 * TERM && upload != deciding && !ref && !seen[r]) /* S3_kept */);
			assert(!(sealed && wasSettled[r] && !ref && !seen[r]) /* S4_anew */)
		fi;
		leaving[r] = false; step[r] = 0 }
	od
}

proctype Changes() {
	do
	:: atomic { changes < CHANGES -> changes++; sealed = true; zombie = true; calm = 0;	/* opening the streams seals X */
		if
		:: begin(U)
		:: !split -> split = true; begin(U);	/* both list what the parent did, and have settled what it had */
			live[O] = true; listed[O] = listed[U]; settled[O] = settled[U]; ever[O] = ever[U];
			served[O] = 0; pin[O] = 0; leaving[O] = false; step[O] = 0
		:: split -> split = false; live[O] = false;
#ifdef NO_JOIN
			settled[U] = settled[U] || settled[O];
#else
			settled[U] = (settled[U] || !listed[U]) && (settled[O] || !listed[O]);
#endif
			ever[U] = settled[U]; listed[U] = listed[U] || listed[O]; listed[O] = false;
			begin(U)
		fi }
	:: atomic { zombie -> zombie = false }
	od
}

init { atomic { live[U] = true; listed[U] = true; served[O] = TERM; run Time(); run Front(); run Collector(U); run Collector(O); run Changes() } }
