/* consensus-reads.pml - reads and renewals of leases by a leader that may be deposed (docs/design/consensus.md): three members, one lease.
 *
 * A leader answers a read, or renews the lease of a holder, without an entry in the log: after a round of heartbeats. Heartbeats and their
 * answers are late or lost. A log is its length and the term of its last entry. Time passes in ticks; a holder counts from when it sent its
 * request (the holder's margin covers clocks that differ).
 *
 * Rules (off with -DNO_<rule>):
 *   ROUND   a quorum has answered the round
 *   AFTER   the round began after the question (off: earlier answers of the term count)
 *   OWN     the leader has committed an entry of its term
 *   EXTEND  a new leader lets the lease run for a full term from its first commit, before it gives the lease to somebody else
 * R1  a read shows everything that was acknowledged before it was asked
 * R2  no two holders hold the lease
 */
#ifndef MT
#define MT 3			/* terms */
#endif
#ifndef LEN
#define LEN 4			/* entries in a log */
#endif
#define TT 2			/* ticks of the lease's term */
#define N 3
#define B(m) (1 << (m))
#define CNT(x) (((x) & 1) + (((x) >> 1) & 1) + (((x) >> 2) & 1))
#define Q(x) (CNT(x) >= 2)
#ifdef NO_ROUND
#define ROUND_ true
#else
#define ROUND_ Q(got)
#endif
#ifdef NO_OWN
#define OWN_(t) true
#else
#define OWN_(t) (cm[t] >= first[t])
#endif

byte term[N], vote[N], sz[N], lt[N];
byte ld[MT + 1], first[MT + 1], ll[MT + 1], cm[MT + 1], has[(MT + 1) * (LEN + 1)], got0[MT + 1]; bool votes[(MT + 1) * N];
byte acked;			/* highest index that a client was told of */
/* the question in hand: of which leader, since when, which members have answered */
byte asked, floor, got, from; bool renews;
/* the lease: ticks that each holder believes in, ticks until a leader may give it to the other */
byte hold[2], left[MT + 1], holder[MT + 1]; byte sent, rec = 2;

active proctype Cluster() {
	byte m, t, k, v;
end:	do
	:: atomic { if :: m = 0 :: m = 1 :: m = 2 fi; t = term[m];
		if
		/* an election, of which the members of one majority know */
		:: t < MT && ld[t + 1] == 0 -> if :: v = (m + 1) % N :: v = (m + 2) % N fi;
			if
			:: term[v] < t + 1 && (lt[m] > lt[v] || (lt[m] == lt[v] && sz[m] >= sz[v])) && sz[m] < LEN ->
				t++; term[m] = t; term[v] = t; ld[t] = m + 1; sz[m]++; lt[m] = t; first[t] = sz[m]; ll[t] = sz[m];
				cm[t] = 0; has[t * (LEN + 1) + sz[m]] = B(m); left[t] = TT; holder[t] = 2
			:: else
			fi
		/* an entry */
		:: ld[t] == m + 1 && ll[t] < LEN -> sz[m]++; lt[m] = t; ll[t]++; has[t * (LEN + 1) + ll[t]] = B(m)
		/* an append arrives */
		:: (ld[t] != m + 1 || t == 0) -> v = t; do :: v < MT -> v++ :: break od;
			if :: v >= 1 && ld[v] != 0 && ld[v] != m + 1 && v >= term[m] -> term[m] = v; sz[m] = ll[v]; lt[m] = v;
				k = first[v]; do :: k <= ll[v] -> has[v * (LEN + 1) + k] = has[v * (LEN + 1) + k] | B(m); k++ :: else -> break od
			:: else fi
		/* commit; the client hears of it */
		:: t > 0 && ld[t] == m + 1 -> k = ll[t];
			if :: cm[t] < k && Q(has[t * (LEN + 1) + k]) -> cm[t] = k; if :: k > acked -> acked = k :: else fi :: else fi
		/* a question comes to a leader: a read, or a renewal by a holder that holds or wants the lease */
		:: t > 0 && ld[t] == m + 1 && asked == 0 -> asked = t; floor = acked; got = B(m);
#ifdef NO_AFTER
			got = got | got0[t];
#endif
			renews = false;
			if
			:: true
			:: OWN_(t) -> v = 0; if :: v = 0 :: v = 1 fi;
				if :: holder[t] == v || (holder[t] == 2 && (left[t] == 0 || rec == v)) -> renews = true; from = v; sent = 0 :: else fi
			fi
		/* a member answers the heartbeat of the round, or of one before it */
		:: t > 0 && ld[t] != 0 && ld[t] != m + 1 -> got0[t] = got0[t] | B(m);
			if :: asked == t -> got = got | B(m) :: else fi
		/* the leader answers, however late it is */
		:: asked > 0 && ld[asked] == m + 1 && ROUND_ && OWN_(asked) ->
			if
			:: !renews -> assert(cm[asked] >= floor)	/* R1 */
			:: else -> holder[asked] = from; rec = from;
				if :: sent < TT -> hold[from] = TT - sent :: else fi;
				assert(hold[0] == 0 || hold[1] == 0)								/* R2 */
			fi;
			asked = 0; got = 0; floor = 0; from = 0; renews = false; sent = 0
		/* the question is given up */
		:: asked > 0 -> asked = 0; got = 0; floor = 0; from = 0; renews = false; sent = 0
		/* a tick */
		:: hold[0] = (hold[0] > 0 -> hold[0] - 1 : 0); hold[1] = (hold[1] > 0 -> hold[1] - 1 : 0);
			sent = (renews && sent < TT -> sent + 1 : sent); t = 1;
			do
			:: t <= MT ->
#ifdef NO_EXTEND
				left[t] = 0;
#else
				left[t] = (left[t] > 0 && ld[t] != 0 && cm[t] >= first[t] -> left[t] - 1 : left[t]);
#endif
				t++
			:: else -> break
			od
		fi;
		m = 0; t = 0; k = 0; v = 0 }
	od
}
