/*
 * Extents that began after a copy of the metadata are taken back into their stream after a restore (docs/decisions/0581).
 *
 * Modelled: one stream under one owner after another; extents that begin, get content, are made ahead and never opened, are truncated away and
 * deleted; a disk with a deleted replica that comes back; a replica that is lost, and one on a node that is away during the restore; a stream that
 * is deleted and made anew; two copies, and several restores from either. Numbers of extents rise over all histories (a restore raises them).
 * Not modelled: how replicas of one extent prove each other and are sealed (append.pml), several streams, splits, extents that became fragments.
 *
 * Properties: S1_deleted: nothing comes back that was deleted before the copy. S2_lost: from a copy of the history that ended, with every node there
 * and the stream not made anew since, everything with content comes back. S3_history: a list that got something back has only extents that the history that ended had in the list. Of two
 * restores from one copy the second can't know of the first if no replica tells of it.
 *
 * Rules: LATER a number above that of the list's last extent; EPOCH an owner epoch not below that of the copied stream; FLOOR a number that no
 * earlier restore gave up; TIP the newest extent with content says which predecessors count; LINK a predecessor that the list has must be its
 * last; GAP behind a missing predecessor only what is of one history.
 */
#ifndef N
#define N 4
#endif
#ifndef RESTORES
#define RESTORES 2
#endif
#ifndef FAULTS
#define FAULTS 1		/* replicas that are lost, and disks that come back with a deleted one */
#endif

bool made[N+1], content[N+1], there[N+1], away[N+1], inl[N+1], gone[N+1], ever[N+1];
byte pred[N+1], ep[N+1], hist[N+1];
byte next = 1, epoch = 1, lepoch = 1, history = 0, low = 0;
/* the two copies */
bool cHave[2], cInl[2*(N+1)], cGone[2*(N+1)], cEver[2*(N+1)];
byte cLepoch[2], cHistory[2], cLow[2], cNext[2];
byte restores, faults;
bool clean = true;		/* no replica was lost or away, and the stream was not made anew */
bool cand[N+1], take[N+1];
byte i, t, s, p, m, k, from, tip;
bool any, ended, bad;
bool traced;		/* a replica is there that says that the history of the copy was left */

inline lastOf() { t = 0; i = 1; do :: i <= N -> if :: inl[i] -> t = i :: else fi; i++ :: else -> break od }

inline begin(filled) {
	lastOf();
	made[next] = true; pred[next] = t; ep[next] = epoch; hist[next] = history; there[next] = true;
	inl[next] = true; ever[next] = true; content[next] = filled; lepoch = epoch; next++
}

inline candidates() {
	i = 1;
	do
	:: i <= N ->
		cand[i] = made[i] && there[i] && !away[i] && !inl[i];
#ifndef NO_LATER
		cand[i] = cand[i] && i > t;
#endif
#ifndef NO_EPOCH
		cand[i] = cand[i] && ep[i] >= lepoch;
#endif
#ifndef NO_FLOOR
		cand[i] = cand[i] && i >= low;
#endif
		take[i] = false; i++
	:: else -> break
	od
}

/* The highest candidate with content below `m`, of history `k` (255: any). */
inline below() {
	s = 0; i = 1;
	do
	:: i < m -> if :: cand[i] && content[i] && (k == 255 || hist[i] == k) -> s = i :: else fi; i++
	:: else -> break
	od
}

#ifdef NO_GAP
#define SAME 255
#else
#define SAME hist[from]
#endif

/* Follows the predecessors of the newest candidate, `from`. */
inline takeBack(c) {
	lastOf(); candidates();
#ifdef NO_TIP
	i = 1; do :: i <= N -> take[i] = cand[i] && content[i]; i++ :: else -> break od;
#else
	m = N + 1; k = 255; below();
	from = s; ended = (s == 0); bad = false;
	do
	:: ended -> break
	:: else ->
		take[s] = true; p = pred[s];
		if
		:: p == t -> ended = true
		:: p != t && p != 0 && cand[p] -> s = p
		:: p > t && !cand[p] && p != 0 ->
			/* the predecessor is missing */
			m = p; k = SAME; below();
			if
			:: s == 0 ->
				ended = true;
#ifndef NO_GAP
				if :: hist[from] != cHistory[c] -> bad = true :: else fi
#endif
			:: else -> skip
			fi
		:: else ->
#ifndef NO_LINK
			bad = true;
#endif
			ended = true
		fi
	od;
	if
	:: bad -> i = 1; do :: i <= N -> take[i] = false; i++ :: else -> break od	/* another history: nothing */
	:: else
	fi
#endif
}

inline restore(c) {
	/* what holds until now: inl, ever, history */
	i = 1; any = false; tip = 0; traced = cHistory[c] == history;
	bool wasInl[N+1], wasEver[N+1];
	do :: i <= N -> wasInl[i] = inl[i]; wasEver[i] = ever[i]; traced = traced || (inl[i] && hist[i] == history && content[i] && there[i] && !away[i]); i++ :: else -> break od;
	i = 1; do :: i <= N -> inl[i] = cInl[c*(N+1)+i]; i++ :: else -> break od;
	lepoch = cLepoch[c]; low = cLow[c];
	takeBack(c);
	i = 1;
	do
	:: i <= N ->
		if :: take[i] -> any = true; tip = i; assert(!cGone[c*(N+1)+i]) /* S1_deleted */ :: else fi;
		if
		:: clean && cHistory[c] == history && wasInl[i] && content[i] -> assert(inl[i] || take[i]) /* S2_lost */
		:: else fi;
		i++
	:: else -> break
	od;
	i = 1;
	do
	:: i <= N ->
		if :: any && traced && (inl[i] || take[i]) -> assert(wasEver[i]) /* S3_history */ :: else fi;
		/* what lies before a taken one was before it in the history that ended, also where it is missing now */
		ever[i] = cEver[c*(N+1)+i] || take[i] || (wasEver[i] && i < tip);
		inl[i] = inl[i] || take[i];
		gone[i] = cGone[c*(N+1)+i]; away[i] = false;
		i++
	:: else -> break
	od;
	restores++; history = restores; low = next; epoch = epoch + 1; clean = true
}

inline copy(c) {
	i = 1;
	do
	:: i <= N -> cInl[c*(N+1)+i] = inl[i]; cGone[c*(N+1)+i] = gone[i]; cEver[c*(N+1)+i] = ever[i]; i++
	:: else -> break
	od;
	cHave[c] = true; cLepoch[c] = lepoch; cHistory[c] = history; cLow[c] = low
}

active proctype world() {
	byte j;
	do
	:: next <= N -> d_step { begin(true) }
	:: next <= N -> d_step { begin(false) }
	:: next <= N -> d_step { lastOf(); made[next] = true; pred[next] = t; ep[next] = epoch; hist[next] = history; there[next] = true; next++ }	/* ahead, never opened */
	:: epoch < 4 -> d_step { epoch++; lepoch = epoch }	/* a new owner opens the stream */
	:: d_step { lastOf(); j = 1; do :: j <= N && !inl[j] -> j++ :: else -> break od; } ;
		if
		:: j < t -> d_step { inl[j] = false; gone[j] = true; there[j] = false }	/* the first is truncated away and deleted */
		:: j < t && faults < FAULTS -> d_step { inl[j] = false; gone[j] = true; faults++ }	/* and its replica comes back */
		:: else
		fi
	:: epoch < 4 && faults < FAULTS -> d_step {	/* the stream is deleted and made anew; replicas come back */
		j = 1; do :: j <= N -> if :: inl[j] -> inl[j] = false; gone[j] = true :: else fi; j++ :: else -> break od;
		epoch++; lepoch = epoch; clean = false; faults++ }
	:: faults < FAULTS -> d_step { j = next - 1; if :: j > 0 && made[j] -> away[j] = true; clean = false; faults++ :: else fi }
	:: faults < FAULTS -> d_step { j = next - 1; if :: j > 0 && made[j] -> there[j] = false; clean = false; faults++ :: else fi }
	:: faults < FAULTS && next > 2 -> d_step { j = next - 2; there[j] = false; clean = false; faults++ }
	:: d_step { !cHave[0] -> copy(0) }
	:: d_step { cHave[0] && !cHave[1] -> copy(1) }
	:: d_step { cHave[0] && restores < RESTORES -> restore(0) }
	:: d_step { cHave[1] && restores < RESTORES -> restore(1) }
	od
}
