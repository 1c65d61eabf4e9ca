/* consensus-members.pml - members that come and go one at a time, and a member that forgets (docs/design/consensus.md).
 *
 * As in consensus-elections.pml a message that was sent may arrive at any later time, any number of times, or never. A configuration counts from
 * when its entry is in the log. While it is not known to be committed, quorums of the one before it are needed, too. A member that forgets has
 * lost its folder, and has no standing from then on.
 *
 * Rules (off with -DNO_<rule>):
 *   JOINT   while the newest configuration is not committed, a quorum of the one before it is needed as well
 *   ONE     the next change waits for the commit of the one before it
 *   FIRST   a change waits for the commit of an entry of the leader's term
 * S1  one leader in a term
 * S2  a leader has every entry that was committed in an earlier term
 * S3  an index is committed with one entry
 * Not modelled: learners (they count in no quorum), readmission, snapshots.
 */
#ifndef MT
#define MT 3			/* terms */
#endif
#ifndef K
#define K 3			/* entries in a log */
#endif
#ifndef INIT
#define INIT 3			/* voters at first: a bit for each member */
#endif
#ifndef FORGETS
#define FORGETS 1
#endif
#define N 3
#define B(m) (1 << (m))
#define CNT(x) (((x) & 1) + (((x) >> 1) & 1) + (((x) >> 2) & 1))
#define Q(g, f, a) (CNT((f) & (g)) > CNT(g) / 2 || CNT((a) & (g)) >= CNT(g) - CNT(g) / 2 + 1)
#define T_(e) ((e) >> 4)
#define ISC(e) (((e) & 8) != 0)		/* content: 8 + voters: a configuration; 0: data */
#define X(t, m) ((t) * N + (m))
#define LASTT(m) (sz[m] == 0 -> 0 : T_(lg[(m) * K + sz[m] - 1]))
#ifdef NO_JOINT
#define J_(p, f, a) true
#else
#define J_(p, f, a) Q(p, f, a)
#endif
#ifdef NO_ONE
#define ONE_ true
#else
#define ONE_ (gi <= cm[t])
#endif
#ifdef NO_FIRST
#define FIRST_ true
#else
#define FIRST_ (cm[t] > 0 && T_(lg[m * K + cm[t] - 1]) == t)
#endif

byte term[N], vote[N], sz[N], lg[N * K], kc[N]; bool std[N], cand[N], leads[N];
bool rq[(MT + 1) * N]; byte rqT[(MT + 1) * N], rqL[(MT + 1) * N], gF[(MT + 1) * N], gA[(MT + 1) * N];
byte ld[MT + 1], ll[MT + 1], L[(MT + 1) * K], cm[MT + 1], aF[(MT + 1) * N], aA[(MT + 1) * N];
byte C[K], Ct[K]; byte forgets;

#define AM(a, t, k) ((a[X(t, 0)] >= (k) -> 1 : 0) | (a[X(t, 1)] >= (k) -> 2 : 0) | (a[X(t, 2)] >= (k) -> 4 : 0))
#define UP(c, t, v) (rqT[X(t, c)] > LASTT(v) || (rqT[X(t, c)] == LASTT(v) && rqL[X(t, c)] >= sz[v]))

inline ack(m, t, k) { if :: aA[X(t, m)] < k -> aA[X(t, m)] = k :: else fi; if :: std[m] && aF[X(t, m)] < k -> aF[X(t, m)] = k :: else fi }
inline add(m, e) { lg[m * K + sz[m]] = e; sz[m]++; L[term[m] * K + ll[term[m]]] = e; ll[term[m]]++; ack(m, term[m], sz[m]) }
/* g: newest configuration of m, gp: the one that counts beside it, gi: index of its entry */
inline groups(m, known) { g = INIT; gp = INIT; gi = 0; i = 0;
	do :: i < sz[m] -> if :: ISC(lg[m * K + i]) -> gp = g; g = lg[m * K + i] & 7; gi = i + 1 :: else fi; i++ :: else -> break od;
	if :: gi <= known -> gp = g :: else fi }

active proctype Cluster() {
	byte m, c, t, k, i, g, gp, gi;
	std[0] = true; std[1] = true; std[2] = true;
end:	do
	:: atomic { if :: m = 0 :: m = 1 :: m = 2 fi; groups(m, kc[m]);
		if
		/* it runs for election */
		:: !leads[m] && term[m] < MT && ((g | gp) & B(m)) != 0 ->
			term[m]++; vote[m] = m + 1; cand[m] = true; t = term[m]; gA[X(t, m)] = B(m); gF[X(t, m)] = (std[m] -> B(m) : 0);
			rq[X(t, m)] = true; rqT[X(t, m)] = LASTT(m); rqL[X(t, m)] = sz[m]
		/* a vote request arrives */
		:: !leads[m] -> if :: c = 0 :: c = 1 :: c = 2 fi; t = 1; do :: t < MT -> t++ :: break od;
			if
			:: c != m && rq[X(t, c)] && t > term[m] -> term[m] = t; vote[m] = 0; cand[m] = false
			:: c != m && rq[X(t, c)] && t == term[m] && vote[m] == 0 && UP(c, t, m) -> vote[m] = c + 1;
				gA[X(t, c)] = gA[X(t, c)] | B(m); gF[X(t, c)] = gF[X(t, c)] | (std[m] -> B(m) : 0)
			:: else
			fi
		/* a leader hears of a higher term */
		:: leads[m] -> if :: c = 0 :: c = 1 :: c = 2 fi; if :: term[c] > term[m] -> term[m] = term[c]; vote[m] = 0; leads[m] = false :: else fi
		/* it is elected */
		:: cand[m] && sz[m] < K && Q(g, gF[X(term[m], m)], gA[X(term[m], m)]) && J_(gp, gF[X(term[m], m)], gA[X(term[m], m)]) ->
			t = term[m]; cand[m] = false; assert(ld[t] == 0);							/* S1 */
			k = 0; do :: k < K -> assert(C[k] == 0 || Ct[k] >= t || (k < sz[m] && lg[m * K + k] == C[k])); k++ :: else -> break od;	/* S2 */
			ld[t] = m + 1; leads[m] = true; ll[t] = sz[m]; k = 0;
			do :: k < sz[m] -> L[t * K + k] = lg[m * K + k]; k++ :: else -> break od; ack(m, t, sz[m]); add(m, t << 4)
		/* a change: one member comes or goes */
		:: leads[m] && sz[m] < K -> t = term[m]; if :: c = 0 :: c = 1 :: c = 2 fi;
			if :: ONE_ && FIRST_ && (g ^ B(c)) != 0 -> add(m, (t << 4) | 8 | (g ^ B(c))) :: else fi
		/* an append arrives */
		:: !leads[m] -> t = 1; do :: t < MT -> t++ :: break od; k = 1; do :: k < K -> k++ :: break od;
			if
			:: ld[t] != 0 && ld[t] != m + 1 && t >= term[m] && k <= ll[t] ->
				if :: t > term[m] -> term[m] = t; vote[m] = 0 :: else fi; cand[m] = false; if :: vote[m] == 0 -> vote[m] = ld[t] :: else fi;
				i = 0; do :: i < k && i < sz[m] && lg[m * K + i] == L[t * K + i] -> i++ :: else -> break od;
				if
				:: i < k -> do :: i < k -> lg[m * K + i] = L[t * K + i]; i++ :: else -> break od; sz[m] = k;
					do :: i < K -> lg[m * K + i] = 0; i++ :: else -> break od
				:: else fi;
				ack(m, t, k); if :: cm[t] <= k && cm[t] > kc[m] -> kc[m] = cm[t] :: true fi
			:: else
			fi
		/* commit */
		:: leads[m] && cm[term[m]] < sz[m] -> t = term[m]; k = cm[t] + 1; do :: k < sz[m] -> k++ :: break od; groups(m, cm[t]);
			if
			:: T_(lg[m * K + k - 1]) == t && Q(g, AM(aF, t, k), AM(aA, t, k)) && J_(gp, AM(aF, t, k), AM(aA, t, k)) ->
				cm[t] = k; kc[m] = k; i = 0;
				do :: i < k -> assert(C[i] == 0 || C[i] == lg[m * K + i]);							/* S3 */
					if :: C[i] == 0 -> Ct[i] = t :: else fi; C[i] = lg[m * K + i]; i++ :: else -> break od
			:: else fi
		/* a folder is lost */
		:: forgets < FORGETS -> forgets++; std[m] = false; cand[m] = false; leads[m] = false; term[m] = 0; vote[m] = 0; sz[m] = 0; kc[m] = 0;
			k = 0; do :: k < K -> lg[m * K + k] = 0; k++ :: else -> break od
		fi;
		m = 0; c = 0; t = 0; k = 0; i = 0; g = 0; gp = 0; gi = 0 }
	od
}
