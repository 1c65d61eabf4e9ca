/* lock-services.pml - several lock services in front of etcd (decision 0520): one lease, two holders, one observer, metadata writes.
 *
 * etcd is linearizable. It holds the election key (its owner and its create revision), the record of the lease, and the number of the last
 * batch. The election key goes away at any time (its etcd lease ends), whatever its owner believes. A transaction that was sent arrives at
 * any later time, once or never, and its answer may be lost after it was committed.
 * A lock service judges one request in memory, makes its effect durable or confirms that it is still the active one, and answers. Answers
 * are lost and requests are given up at any time. Time passes in ticks; clocks run at the same speed (the holder's margin covers the rest).
 *
 * Rules (off with -DNO_<rule>):
 *   COND     every transaction is conditional on the create revision of the election key
 *   SEQ      every transaction is conditional on the number of the batch before it
 *   DECIDE   an unknown outcome is resolved by sending the same batch again (off: it is taken for a no, and memory goes back)
 *   CONFIRM  an answer that needs no record is given after a transaction, sent since it was judged, has found the election key
 *   EXTEND   a new active one extends the lease by a full term, counted from the last moment at which the one before can have judged a renewal
 *            that it answered: S ticks after a standby first saw the beat and the batch that it still finds after its own election; from the
 *            election if it saw none (-DFULL: always from the election, as before decision 0416)
 *   BEAT     an answer that needs no record, of a request that was judged S ticks or more after the sending of the last beat that etcd
 *            answered, is given after a new beat (a write to etcd), not after a read
 *   SAME     what a standby saw counts only if beat and batch are the same after its election
 *   NEXT     what a standby saw counts only if nobody was elected between the one that it saw and itself
 *   LOAD     the record is read, and the term counted, after the election (off: by the standby, before it)
 *   ENDED    the end of the lease is recorded before anybody is told
 * P1  no two holders hold at the same time
 * P2  whoever was told to have ended holds no more, and neither holds nor is said to hold ever again under that epoch
 * P3  no epoch is given twice
 * P4  a metadata write is committed only under the recorded epoch
 * P5  the recorded epoch never falls
 * P6  what was told is recorded: an answered grant or end is in etcd
 * Not modelled: several leases, groups of requests, refusals of renewals, etcd members (etcd is one linearizable object).
 */
#ifndef T
#define T 2			/* ticks of a term */
#endif
#ifndef DEPOSED
#define DEPOSED 2		/* times that the election key goes away */
#endif
#ifndef BATCHES
#define BATCHES 4		/* batches in etcd */
#endif
#ifndef LOSSES
#define LOSSES 1		/* transactions without an answer */
#endif
#ifndef BEATS
#define BEATS 3			/* beats in etcd */
#endif
#ifndef S
#define S 1			/* ticks after a beat was sent in which answers need no other one */
#endif
#define NOBODY 2
mtype = { standby, elected, serving, none, acquire, renew, ask, look, write };

/* etcd */
byte owner = NOBODY, rev; byte eEp, eHolder, seq, beat; bool eEnded;
/* lock services: ticks since the last beat of its own was sent, what a standby saw, and for how many ticks it is so */
byte beatAge[2], sent[2], beatSent[2], beatRev[2]; bool quiet[2]; byte sawRev[2], sawSeq[2], sawBeat[2], sawFor[2];
/* lock services: memory, and as it was before the request that is judged */
mtype st[2]; byte myRev[2], mEp[2], mHolder[2], mSeq[2], left[2]; bool mEnded[2];
byte wasEp[2], wasHolder[2], wasLeft[2]; bool wasEnded[2];
/* the request in hand; from: 0, 1 a holder, 2 the observer */
mtype kind[2]; byte from[2], under[2]; bool records[2], dropped[2];
/* transactions under way: 2 * s the newest, 2 * s + 1 an earlier one */
bool fly[4]; byte fRev[4], fSeq[4], fEp[4], fHolder[4], fUnder[4]; bool fEnded[4];
/* holders */
mtype req[3]; byte age[2], hold[2], hEp[2];
byte told, given, deposed, losses;

#ifdef NO_COND
#define COND_(s, r) true
#else
#define COND_(s, r) (owner == (s) && rev == (r))
#endif
#ifdef NO_SEQ
#define SEQ_(q) true
#else
#define SEQ_(q) (seq == (q))
#endif
#ifdef NO_CONFIRM
#define CONFIRM_(s) true
#else
#define CONFIRM_(s) (owner == (s) && rev == myRev[s])
#endif
#ifdef NO_EXTEND
#define TERM_ 0
#else
#define TERM_ T
#endif
#ifdef NO_ENDED
#define ENDED_ false
#else
#define ENDED_ true
#endif

#ifdef NO_BEAT
#define BEAT_(s) false
#else
#define BEAT_(s) quiet[s]
#endif
#ifdef NO_SAME
#define SAME_(s) true
#else
#define SAME_(s) (sawSeq[s] == seq && sawBeat[s] == beat)
#endif
#ifdef NO_NEXT
#define NEXT_(s) true
#else
#define NEXT_(s) (sawRev[s] + 1 == myRev[s])
#endif
#ifdef FULL
#define BOUND_(s) false
#else
#define BOUND_(s) (sawRev[s] > 0 && SAME_(s) && NEXT_(s))
#endif
inline load(s) { mEp[s] = eEp; mHolder[s] = eHolder; mEnded[s] = eEnded; mSeq[s] = seq; left[s] = (eEp > 0 && !eEnded -> TERM_ : 0);
	if
	:: left[s] > 0 && BOUND_(s) -> left[s] = (sawFor[s] >= T + S -> 0 : (T + S - sawFor[s] < T -> T + S - sawFor[s] : T))
	:: else fi;
	sawRev[s] = 0; sawSeq[s] = 0; sawBeat[s] = 0; sawFor[s] = 0; beatAge[s] = S }
inline forget(s) { quiet[s] = false; beatAge[s] = 0; sawRev[s] = 0; sawSeq[s] = 0; sawBeat[s] = 0; sawFor[s] = 0; st[s] = standby; kind[s] = none; from[s] = 0; under[s] = 0; records[s] = false; dropped[s] = false; myRev[s] = 0; wasEp[s] = 0; wasHolder[s] = 0;
	wasLeft[s] = 0; wasEnded[s] = false; mEp[s] = 0; mHolder[s] = 0; mSeq[s] = 0; left[s] = 0; mEnded[s] = false }
inline clear(f) { fly[f] = false; fRev[f] = 0; fSeq[f] = 0; fEp[f] = 0; fHolder[f] = 0; fUnder[f] = 0; fEnded[f] = false }
inline apply(f) {
	if
	:: fUnder[f] > 0 -> assert(fUnder[f] == eEp)						/* P4 */
	:: else -> assert(fEp[f] >= eEp); eEp = fEp[f]; eHolder = fHolder[f]; eEnded = fEnded[f]	/* P5 */
	fi;
	seq++ }
inline answer(s) {
	if
	:: kind[s] == acquire -> assert(mEp[s] > given); given = mEp[s]; assert(eEp >= mEp[s]);		/* P3 P6 */
		if
		:: !dropped[s] -> hEp[from[s]] = mEp[s]; hold[from[s]] = T - age[from[s]]; over(from[s]);
			assert(hold[from[s]] == 0 || (hold[1 - from[s]] == 0 && hEp[from[s]] > told))	/* P1 P2 */
		:: else fi
	:: kind[s] == renew && !dropped[s] -> over(from[s]);
		if
		:: hold[from[s]] > 0 && hEp[from[s]] == mEp[s] && T - age[from[s]] > hold[from[s]] -> hold[from[s]] = T - age[from[s]];
			assert(hold[1 - from[s]] == 0 && hEp[from[s]] > told)
		:: else fi
	:: kind[s] == ask -> told = (mEp[s] > told -> mEp[s] : told); req[2] = none;
		assert((hold[0] == 0 || hEp[0] > told) && (hold[1] == 0 || hEp[1] > told));	/* P2 */
#ifndef NO_ENDED
		assert(eEnded || eEp > mEp[s])							/* P6 */
#endif
	:: kind[s] == look -> req[2] = none; assert(mEp[s] > told)				/* P2 */
	:: kind[s] == write && !dropped[s] -> over(from[s])
	:: else fi;
	kind[s] = none; from[s] = 0; under[s] = 0; records[s] = false; dropped[s] = false; quiet[s] = false }
inline over(h) { req[h] = none;			/* a later answer to it is dropped */
	if :: kind[0] != none && from[0] == h -> dropped[0] = true :: else fi;
	if :: kind[1] != none && from[1] == h -> dropped[1] = true :: else fi }
#define judged(s, k, h, r) kind[s] = k; from[s] = h; records[s] = r; dropped[s] = false; quiet[s] = (!(r) && beatAge[s] >= S)
#define remember(s) wasEp[s] = mEp[s]; wasHolder[s] = mHolder[s]; wasLeft[s] = left[s]; wasEnded[s] = mEnded[s]

proctype Service(byte s) {
	byte h;
end:	do
#ifdef NO_LOAD
	:: d_step { st[s] == standby && myRev[s] == 0 -> load(s); myRev[s] = 255 }
	:: d_step { st[s] == standby && myRev[s] == 255 && owner == NOBODY -> owner = s; rev++; myRev[s] = rev; st[s] = serving }
#else
	:: d_step { st[s] == standby && owner == NOBODY -> owner = s; rev++; myRev[s] = rev; st[s] = elected }
	:: d_step { st[s] == elected -> load(s); st[s] = serving }
	/* a standby looks */
	:: d_step { st[s] == standby && owner != NOBODY && owner != s ->
		if
		:: sawRev[s] == rev && sawSeq[s] == seq && sawBeat[s] == beat -> skip
		:: else -> sawRev[s] = rev; sawSeq[s] = seq; sawBeat[s] = beat; sawFor[s] = 0 fi }
#endif
	/* requests */
	:: atomic { st[s] == serving && kind[s] == none -> if :: h = 0 :: h = 1 fi;
		if
		:: req[h] == acquire && (mEp[s] == 0 || mEnded[s] || left[s] == 0) && mEp[s] < 3 ->
			remember(s); mEp[s]++; mHolder[s] = h; mEnded[s] = false; left[s] = T; judged(s, acquire, h, true)
		:: req[h] == renew && mEp[s] == hEp[h] && !mEnded[s] && left[s] > 0 -> remember(s); left[s] = T; judged(s, renew, h, false)
		:: req[h] == write && mEp[s] == hEp[h] -> remember(s); judged(s, write, h, true); under[s] = hEp[h]
		:: (req[h] == renew || req[h] == write) && mEp[s] != hEp[h] -> over(h)
		:: else fi; h = 0 }
	:: d_step { st[s] == serving && kind[s] == none && req[2] == ask && mEp[s] > 0 && (mEnded[s] || left[s] == 0) ->
		remember(s); judged(s, ask, 2, !mEnded[s] && ENDED_); mEnded[s] = true }
	:: d_step { st[s] == serving && kind[s] == none && req[2] == ask && mEp[s] > 0 && !mEnded[s] && left[s] > 0 -> judged(s, look, 2, false) }
	/* a record */
	:: d_step { st[s] == serving && records[s] && !fly[2 * s] && seq < BATCHES -> fly[2 * s] = true; fRev[2 * s] = myRev[s]; fSeq[2 * s] = mSeq[s];
		fEp[2 * s] = mEp[s]; fHolder[2 * s] = mHolder[s]; fEnded[2 * s] = mEnded[s]; fUnder[2 * s] = under[s] }
	:: d_step { fly[2 * s] && COND_(s, fRev[2 * s]) && SEQ_(fSeq[2 * s]) -> apply(2 * s);			/* committed and answered */
		if :: st[s] == serving && records[s] && myRev[s] == fRev[2 * s] -> mSeq[s]++; answer(s) :: else fi; clear(2 * s) }
	:: d_step { fly[2 * s] && !COND_(s, fRev[2 * s]) -> if :: myRev[s] == fRev[2 * s] -> forget(s) :: else fi; clear(2 * s) }
	:: d_step { fly[2 * s] && COND_(s, fRev[2 * s]) && !SEQ_(fSeq[2 * s]) ->				/* it was committed before */
		if :: st[s] == serving && records[s] && myRev[s] == fRev[2 * s] -> mSeq[s]++; answer(s) :: else fi; clear(2 * s) }
	:: d_step { fly[2 * s] && losses < LOSSES && !fly[2 * s + 1] -> losses++;				/* no answer: it is under way, and may arrive late */
		fly[2 * s + 1] = true; fRev[2 * s + 1] = fRev[2 * s]; fSeq[2 * s + 1] = fSeq[2 * s]; fEp[2 * s + 1] = fEp[2 * s];
		fHolder[2 * s + 1] = fHolder[2 * s]; fEnded[2 * s + 1] = fEnded[2 * s]; fUnder[2 * s + 1] = fUnder[2 * s]; clear(2 * s);
#ifdef NO_DECIDE
		if :: st[s] == serving && records[s] -> mEp[s] = wasEp[s]; mHolder[s] = wasHolder[s]; mEnded[s] = wasEnded[s]; left[s] = (wasLeft[s] < left[s] -> wasLeft[s] : left[s]);
			if :: !dropped[s] && from[s] < 2 -> req[from[s]] = none :: else fi;
			kind[s] = none; from[s] = 0; under[s] = 0; records[s] = false; dropped[s] = false
		:: else fi
#endif
	}
	:: d_step { fly[2 * s + 1] && COND_(s, fRev[2 * s + 1]) && SEQ_(fSeq[2 * s + 1]) -> apply(2 * s + 1); clear(2 * s + 1) }
	:: d_step { fly[2 * s + 1] -> clear(2 * s + 1) }
	/* an answer without a record */
	:: d_step { st[s] == serving && kind[s] != none && !records[s] && !BEAT_(s) && CONFIRM_(s) -> answer(s) }
	:: d_step { st[s] == serving && kind[s] != none && !records[s] && !CONFIRM_(s) -> forget(s) }
	/* a beat: sent, written, answered; its age counts from its sending, and a lost answer leaves the age of the one before */
	:: d_step { st[s] == serving && kind[s] != none && !records[s] && quiet[s] && sent[s] == 0 && beat < BEATS -> sent[s] = 1; beatSent[s] = 0; beatRev[s] = myRev[s] }
	:: d_step { sent[s] == 1 && COND_(s, beatRev[s]) && beat < BEATS -> beat++; sent[s] = 2;
		if :: st[s] == serving && kind[s] == look -> answer(s) :: else fi }		/* true when etcd wrote the beat, whenever it is told */
	:: d_step { sent[s] == 1 && !COND_(s, beatRev[s]) -> sent[s] = 0; beatSent[s] = 0; if :: myRev[s] == beatRev[s] -> forget(s) :: else fi; beatRev[s] = 0 }
	:: d_step { sent[s] == 2 -> if :: st[s] == serving && myRev[s] == beatRev[s] -> beatAge[s] = beatSent[s]; quiet[s] = false; if :: kind[s] != none && !records[s] -> answer(s) :: else fi :: else fi;
		sent[s] = 0; beatSent[s] = 0; beatRev[s] = 0 }
	/* a crash, and a new start */
	:: d_step { st[s] != standby && deposed < DEPOSED && owner == s -> deposed++; owner = NOBODY; forget(s) }
	od
}

proctype World() {
	byte h;
end:	do
	:: d_step { owner != NOBODY && deposed < DEPOSED -> deposed++; owner = NOBODY }
	:: atomic { if :: h = 0 :: h = 1 fi;
		if
		:: req[h] == none && hold[h] == 0 -> req[h] = acquire; age[h] = 0
		:: req[h] == none && hold[h] > 0 -> req[h] = renew; age[h] = 0
		:: req[h] == none && hEp[h] > 0 -> req[h] = write; age[h] = 0
		:: req[h] != none -> over(h)							/* given up */
		fi; h = 0 }
	:: d_step { req[2] == none -> req[2] = ask }
	:: d_step { true ->
		hold[0] = (hold[0] > 0 -> hold[0] - 1 : 0); hold[1] = (hold[1] > 0 -> hold[1] - 1 : 0);
		left[0] = (left[0] > 0 -> left[0] - 1 : 0); left[1] = (left[1] > 0 -> left[1] - 1 : 0);
		beatAge[0] = (beatAge[0] < S -> beatAge[0] + 1 : S); beatAge[1] = (beatAge[1] < S -> beatAge[1] + 1 : S);
		beatSent[0] = (sent[0] > 0 && beatSent[0] < S -> beatSent[0] + 1 : beatSent[0]); beatSent[1] = (sent[1] > 0 && beatSent[1] < S -> beatSent[1] + 1 : beatSent[1]);
		sawFor[0] = (sawRev[0] > 0 && sawFor[0] < T + S -> sawFor[0] + 1 : sawFor[0]); sawFor[1] = (sawRev[1] > 0 && sawFor[1] < T + S -> sawFor[1] + 1 : sawFor[1]);
		wasLeft[0] = (wasLeft[0] > 0 -> wasLeft[0] - 1 : 0); wasLeft[1] = (wasLeft[1] > 0 -> wasLeft[1] - 1 : 0);
		age[0] = (req[0] != none && age[0] < T -> age[0] + 1 : age[0]); age[1] = (req[1] != none && age[1] < T -> age[1] + 1 : age[1]) }
	od
}

init { atomic {
	st[0] = standby; st[1] = standby; kind[0] = none; kind[1] = none; req[0] = none; req[1] = none; req[2] = none;
	run Service(0); run Service(1); run World()
} }
