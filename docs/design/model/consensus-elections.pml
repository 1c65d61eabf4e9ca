/* consensus-elections.pml - elections, one log, and members that forget (docs/design/consensus.md): three members, terms, entries.
 *
 * A message that was sent may arrive at any later time, any number of times, or never: vote requests, votes, appends and acknowledgements are
 * kept as sets that only grow, and anybody may receive any of them. An append carries any prefix of the log of its leader in that term. Writes
 * are atomic and durable before anything is sent. A start is a crash and a restart: the member keeps its folder. A member forgets when its
 * folder is put back: it starts with a copy that was made at any earlier time, or with nothing. Nobody else forgets until it has its standing.
 *
 * Rules (off with -DNO_<rule>):
 *   RETURN    a member that starts has no standing (off: a folder that was put back votes at once)
 *   WIDE      members without standing count only in a wide quorum, of all three (off: in a majority)
 *   READMIT   a member has its standing when the entry that readmits its start is committed (off: when it has the entry)
 *   START     an entry readmits one start (off: any start of the member, so that it counts again for the next one)
 *   USED      obeying a leader uses the vote of the term up
 *   ONCE      a vote is given once, to one start of a candidate (off: given again to the same member, and counted by its next start)
 *   LOGCHECK  a vote needs a log that is as up to date
 *   OWNTERM   only entries of the leader's term are committed by counting
 *   PREVOTE   the term rises only after a quorum said that it would vote
 * S1  one leader in a term, and one start of it
 * S2  a leader has every entry that was committed in an earlier term
 * S3  an index is committed with one entry
 * S4  a member that nothing reaches does not raise its term
 * Not modelled: members that come and go (consensus-members.pml), snapshots, writes that are not synced (the package's simulation).
 */
#ifndef MT
#define MT 3			/* terms */
#endif
#ifndef K
#define K 3			/* entries in a log */
#endif
#ifndef STARTS
#define STARTS 2		/* starts with the folder as it was */
#endif
#ifndef FORGETS
#define FORGETS 1		/* starts with a folder that was put back */
#endif
#ifndef COPIES
#define COPIES 1		/* 1: a copy of one folder is made at any time; 0: a folder is lost, never put back */
#endif
#ifndef CUTS
#define CUTS 0			/* times that a member is cut off */
#endif
#define N 3
#define B(m) (1 << (m))
#define CNT(x) (((x) & 1) + (((x) >> 1) & 1) + (((x) >> 2) & 1))
#ifdef NO_WIDE
#define Q(f, a) (CNT(a) >= 2)
#else
#define Q(f, a) (CNT(f) >= 2 || CNT(a) >= 3)
#endif
#define T_(e) ((e) >> 4)		/* term of an entry; 0: none */
#ifdef NO_START
#define RE(m, s) (1 + (m) * 4)
#else
#define RE(m, s) (1 + (m) * 4 + (s))	/* content: readmits that start of that member; 0: data */
#endif
#define X(t, m) ((t) * N + (m))
#define LASTT(m) (sz[m] == 0 -> 0 : T_(lg[(m) * K + sz[m] - 1]))

/* members: figure 2, standing, start */
byte term[N], vote[N], sz[N], lg[N * K], start[N]; bool std[N]; bool cand[N]; byte leads[N];
/* a copy of one folder */
byte cOf = N, cTerm, cVote, cLen, cLg[K];
/* messages: vote requests, votes (with and without standing), logs of leaders, acknowledged lengths, commit */
bool rq[(MT + 1) * N]; byte rqT[(MT + 1) * N], rqL[(MT + 1) * N];
byte gF[(MT + 1) * N], gA[(MT + 1) * N], gS[(MT + 1) * N];
byte ld[MT + 1], ll[MT + 1], L[(MT + 1) * K], cm[MT + 1];
byte aF[(MT + 1) * N], aA[(MT + 1) * N];
/* truth */
byte C[K], Ct[K]; byte forgetful = N, forgets, starts, cuts, cutOff = N;

#define UP(c, t, v) (rqT[X(t, c)] > LASTT(v) || (rqT[X(t, c)] == LASTT(v) && rqL[X(t, c)] >= sz[v]))
#define WOULD(m, v) ((v) == (m) || ((v) != cutOff && term[v] <= term[m] && (LASTT(m) > LASTT(v) || (LASTT(m) == LASTT(v) && sz[m] >= sz[v]))))
#define WA(m) ((WOULD(m, 0) -> 1 : 0) | (WOULD(m, 1) -> 2 : 0) | (WOULD(m, 2) -> 4 : 0))
#define FM ((std[0] -> 1 : 0) | (std[1] -> 2 : 0) | (std[2] -> 4 : 0))
#define AM(a, t, k) ((a[X(t, 0)] >= (k) -> 1 : 0) | (a[X(t, 1)] >= (k) -> 2 : 0) | (a[X(t, 2)] >= (k) -> 4 : 0))

#ifdef NO_PREVOTE
#define PRE_(m) true
#else
#define PRE_(m) (m != cutOff && Q(WA(m) & FM, WA(m)))
#endif
#ifdef NO_ONCE
#define FREE_(m, c) (vote[m] == 0 || vote[m] == (c) + 1)
#else
#define FREE_(m, c) (vote[m] == 0)
#endif
#ifdef NO_LOGCHECK
#define LOG_(c, t, m) true
#else
#define LOG_(c, t, m) UP(c, t, m)
#endif
#ifdef NO_OWNTERM
#define OWN_(m, t, k) true
#else
#define OWN_(m, t, k) (T_(lg[(m) * K + (k) - 1]) == (t))
#endif
#ifdef NO_READMIT
#define SURE_(m, t, i) true
#else
#define SURE_(m, t, i) ((i) < cm[t] && lg[(m) * K + (i)] == L[(t) * K + (i)])
#endif

inline ack(m, t, k) { if :: aA[X(t, m)] < k -> aA[X(t, m)] = k :: else fi; if :: std[m] && aF[X(t, m)] < k -> aF[X(t, m)] = k :: else fi }
inline add(m, e) { lg[m * K + sz[m]] = e; sz[m]++; L[term[m] * K + ll[term[m]]] = e; ll[term[m]]++; ack(m, term[m], sz[m]) }
inline begin(m) { start[m]++; cand[m] = false; leads[m] = 0;
#ifndef NO_RETURN
	std[m] = false
#endif
}

active proctype Cluster() {
	byte m, c, t, k, i;
	std[0] = true; std[1] = true; std[2] = true;
end:	do
	:: atomic { if :: m = 0 :: m = 1 :: m = 2 fi;
		if
		/* it runs for election */
		:: leads[m] == 0 && term[m] < MT && PRE_(m) -> assert(m != cutOff);	/* S4 */
			term[m]++; vote[m] = m + 1; cand[m] = true; t = term[m];
#ifdef NO_ONCE
			gF[X(t, m)] = gF[X(t, m)] | (std[m] -> B(m) : 0); gA[X(t, m)] = gA[X(t, m)] | B(m);
#else
			gF[X(t, m)] = (std[m] -> B(m) : 0); gA[X(t, m)] = B(m);	/* votes for an earlier start do not count */
#endif
			gS[X(t, m)] = start[m]; rq[X(t, m)] = true; rqT[X(t, m)] = LASTT(m); rqL[X(t, m)] = sz[m]
		/* a vote request arrives */
		:: m != cutOff -> if :: c = 0 :: c = 1 :: c = 2 fi; t = 1; do :: t < MT -> t++ :: break od;
			if
			:: c != m && rq[X(t, c)] && t > term[m] -> term[m] = t; vote[m] = 0; cand[m] = false; leads[m] = 0
			:: c != m && rq[X(t, c)] && t == term[m] && leads[m] == 0 && FREE_(m, c) && LOG_(c, t, m) -> vote[m] = c + 1; gA[X(t, c)] = gA[X(t, c)] | B(m); gF[X(t, c)] = gF[X(t, c)] | (std[m] -> B(m) : 0)
			:: else
			fi
		/* it is elected */
		:: cand[m] && Q(gF[X(term[m], m)], gA[X(term[m], m)]) && sz[m] < K -> t = term[m]; cand[m] = false;
			assert(ld[t] == 0);							/* S1 */
			k = 0; do :: k < K -> assert(C[k] == 0 || Ct[k] >= t || (k < sz[m] && lg[m * K + k] == C[k])); k++ :: else -> break od;	/* S2 */
			ld[t] = m + 1; leads[m] = 1; ll[t] = sz[m];
			k = 0; do :: k < sz[m] -> L[t * K + k] = lg[m * K + k]; k++ :: else -> break od;
			ack(m, t, sz[m]);
			if :: std[m] -> add(m, t << 4) :: else -> add(m, (t << 4) | RE(m, start[m])) fi
		/* an entry: data, or the readmission of a member that says that it has no standing */
		:: leads[m] == 1 && sz[m] < K -> add(m, term[m] << 4)
		:: leads[m] == 1 && sz[m] < K -> if :: c = 0 :: c = 1 :: c = 2 fi;
			if :: c != m && !std[c] && term[c] == term[m] -> add(m, (term[m] << 4) | RE(c, start[c])) :: else fi
		/* an append arrives: the first k entries of the log of that term */
		:: m != cutOff && leads[m] == 0 -> t = 1; do :: t < MT -> t++ :: break od; k = 1; do :: k < K -> k++ :: break od;
			if
			:: ld[t] != 0 && ld[t] != m + 1 && t >= term[m] && k <= ll[t] ->
				if :: t > term[m] -> term[m] = t; vote[m] = 0 :: else fi; cand[m] = false;
#ifndef NO_USED
				if :: vote[m] == 0 -> vote[m] = ld[t] :: else fi;
#endif
				i = 0; do :: i < k && i < sz[m] && lg[m * K + i] == L[t * K + i] -> i++ :: else -> break od;
				if
				:: i < k -> do :: i < k -> lg[m * K + i] = L[t * K + i]; i++ :: else -> break od; sz[m] = k;
					do :: i < K -> lg[m * K + i] = 0; i++ :: else -> break od
				:: else fi;
				ack(m, t, k)
			:: else
			fi
		/* commit */
		:: leads[m] == 1 && cm[term[m]] < sz[m] -> t = term[m]; k = cm[t] + 1; do :: k < sz[m] -> k++ :: break od;
			if
			:: Q(AM(aF, t, k), AM(aA, t, k)) && OWN_(m, t, k) -> cm[t] = k; i = 0;
				do :: i < k -> assert(C[i] == 0 || C[i] == lg[m * K + i]); if :: C[i] == 0 -> Ct[i] = t :: else fi; C[i] = lg[m * K + i]; i++ :: else -> break od	/* S3 */
			:: else fi
		/* it has its standing again */
		:: !std[m] && m != cutOff -> t = term[m]; i = 0;
			do
			:: i < sz[m] ->
				if
				:: (lg[m * K + i] & 15) == RE(m, start[m]) && ld[t] != 0 && SURE_(m, t, i) -> std[m] = true; if :: forgetful == m -> forgetful = N :: else fi; break
				:: else -> i++
				fi
			:: else -> break
			od
		/* faults */
		:: starts < STARTS -> starts++; begin(m)
		:: cOf == N && forgets < FORGETS && COPIES > 0 -> cOf = m; cTerm = term[m]; cVote = vote[m]; cLen = sz[m];
			k = 0; do :: k < sz[m] -> cLg[k] = lg[m * K + k]; k++ :: else -> break od
		:: forgets < FORGETS && (forgetful == N || forgetful == m) -> forgets++; begin(m); forgetful = m;
			if
			:: cOf == m -> term[m] = cTerm; vote[m] = cVote; sz[m] = cLen; k = 0;
				do :: k < K -> lg[m * K + k] = (k < cLen -> cLg[k] : 0); k++ :: else -> break od
			:: term[m] = 0; vote[m] = 0; sz[m] = 0; k = 0; do :: k < K -> lg[m * K + k] = 0; k++ :: else -> break od
			fi;
			if :: std[m] -> forgetful = N :: else fi
		:: cuts < CUTS && cutOff == N -> cuts++; cutOff = m
		:: cutOff != N -> cutOff = N
		fi;
		m = 0; c = 0; t = 0; k = 0; i = 0 }
	od
}
