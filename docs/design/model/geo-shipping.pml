/* geo-shipping.pml - the commits of one PartitionName on their way to the other stamp (../geo.md). Commits 1..N, each a put or a deletion of one of
 * two keys; its number is its version. Owner 0 of the range is followed by owner 1 (a move, or the child of a split or merge: it reads the logs of its
 * parents first). The old owner may be alive still. A sender opens a connection from its cursor and sends the log in order; a connection that it
 * has given up for a new one may still deliver. The receiver applies in memory, syncs, acknowledges; it may crash. Acknowledgements are lost.
 * -DSEED: the receiver has nothing and N0 commits were made before: a scan of all keys goes beside the log from where the scan began.
 * Rules (off with -DNO_<rule>):
 *   VERSION   a row is applied only if its version is higher than the one of its key
 *   ACKSYNC   the receiver acknowledges what it has synced
 *   CURSOR    the durable cursor is what was acknowledged (off: what was sent)
 *   HEIR      a new owner begins at the durable cursor of its predecessor (off: at the end of its log)
 *   FLOOR     the receiver applies no row at or below the highest position up to which it has forgotten tombstones
 *   TOMBSTONE a deletion leaves a tombstone (off: the key is gone at once)
 *   SEEDTOMB  no tombstone is forgotten before seeding has ended
 *   SCANSYNC  a key of the scan is acknowledged when the receiver has synced it (off: when it has applied it)
 *   SEEDEND   seeding ends when the log is acknowledged to where it was at the end of the scan (off: when the scan is acknowledged)
 * -DBYNAME: the receiver has one version for the PartitionName in place of versions of keys, tombstones and floor (geo-shipping.md). A scanned key
 * is sent with the number of commits at its reading, also if it is gone by then, and replaces the key. Rules besides CURSOR, HEIR, ACKSYNC,
 * SCANSYNC, SEEDEND:
 *   VERSION   a commit is applied only if its number is above the version
 *   SCANOLD   a scanned key is applied only if its number is not below the version
 * S1  what the receiver shows is what the first m commits made, for some m (not asked while it is seeded)
 * S2  ... and m is at least what Last Sync Time says
 */
#ifndef N
#define N 3
#endif
#ifndef N0
#define N0 0
#endif
#ifndef CONNS
#define CONNS 3			/* connections, all owners */
#endif
#ifndef CRASHES
#define CRASHES 1		/* of the receiver */
#endif
#define K 2
byte key[N + 1]; bool del[N + 1]; byte w;	/* the log */
byte trimmed;
byte owner, dcur;				/* durable: current owner, cursor */
byte cur[2];					/* of each owner, in memory: acknowledged */
byte claim;					/* Last Sync Time, as a commit */
byte conns; byte cOwner[CONNS], dl[CONNS], ackable[CONNS]; bool gone[CONNS];	/* dl: delivered */
byte ver[K], rver[K]; bool dead[K], rdead[K];	/* the receiver: in memory and synced */
byte floor, rfloor, crashes;
byte mark, rmark;				/* BYNAME: version of the PartitionName, in memory and synced */
byte endOf[2];					/* how far an owner knows the log */
/* Seeding */
bool seeding; byte scanAt, scanEnd; byte scan[CONNS * K], scanHas[CONNS * K]; bool scanned[K], scanApplied[K], scanAcked[K]; byte scanOwner;

/* Is commit v what a reader sees of its key after m commits? */
bool match, matchKey; byte i, j, last;
inline check() {
	d_step {
		if
		:: seeding -> skip
		:: else ->
			match = false; i = claim;
			do
			:: i <= w && !match ->
				match = true; j = 0;
				do
				:: j < K ->
					last = i;
					do
					:: last > 0 && key[last] != j -> last--
					:: else -> break
					od;
					if
					:: last == 0 || del[last] -> matchKey = (ver[j] == 0 || dead[j])
					:: else -> matchKey = (ver[j] == last && !dead[j])
					fi;
					match = match && matchKey;
					j++
				:: else -> break
				od;
				i++
			:: else -> break
			od;
			assert(match)	/* S1 S2 */
		fi;
		i = 0; j = 0; last = 0; match = false; matchKey = false
	}
}

inline apply(v, k, isDel) {
	if
#ifdef BYNAME
#ifndef NO_VERSION
	:: v <= mark -> skip
#endif
	:: else ->
		mark = v; ver[k] = (isDel -> 0 : v); dead[k] = false
#else
#ifndef NO_VERSION
	:: v <= ver[k] -> skip
#endif
#ifndef NO_FLOOR
	:: v > ver[k] && v <= floor -> skip
#endif
	:: else ->
		ver[k] = v; dead[k] = isDel;
#ifdef NO_TOMBSTONE
		if :: isDel -> ver[k] = 0; dead[k] = false :: else fi;
#endif
#endif
	fi
}

/* A key of the scan. BYNAME: as it was when at - 1 commits were made; v: its commit, 0: it was gone. Else at is its commit. */
inline applyScanned(v, k, at) {
	if
#ifdef BYNAME
#ifndef NO_SCANOLD
	:: at - 1 < mark -> skip
#endif
	:: else -> ver[k] = v; dead[k] = false
#else
	:: true -> apply(at, k, false)
#endif
	fi
}

#ifdef NO_SEEDTOMB
#define MAYFORGET true
#else
#define MAYFORGET !seeding
#endif
#ifdef NO_SEEDEND
#define SEEDED true
#else
#define SEEDED (cur[owner] >= scanEnd)
#endif

/* Key k of the scan was applied from connection n: its sender hears of it after the next sync. */
#ifdef NO_SCANSYNC
#define applied(n, k) scanAcked[k] = true
#else
#define applied(n, k) scanApplied[k] = (cOwner[n] == owner)
#endif

inline ends(n) { gone[n] = true; dl[n] = 0; ackable[n] = 0; scan[n * K] = 0; scan[n * K + 1] = 0; scanHas[n * K] = 0; scanHas[n * K + 1] = 0 }

byte c; byte k;
active proctype all() {
	atomic {
		/* What was there before. */
		do
		:: w < N0 ->
			w++;
			if :: key[w] = 0 :: key[w] = 1 fi;
			if :: del[w] = true :: del[w] = false fi
		:: else -> break
		od;
		endOf[0] = w;
#ifdef SEED
		seeding = true; cur[0] = w; dcur = w; trimmed = w; scanAt = w;
#endif
	}
end:	do
	/* The current owner commits. */
	:: d_step { w < N -> w++; endOf[owner] = w };
		atomic {
			if :: key[w] = 0 :: key[w] = 1 fi;
			if :: del[w] = true :: del[w] = false fi
		}
	/* The range goes to another owner. */
	:: d_step { owner == 0 ->
			owner = 1; endOf[1] = w;
#ifdef NO_HEIR
			cur[1] = w;
#else
			cur[1] = (dcur < trimmed -> trimmed : dcur);
#endif
		}
	/* The log is trimmed. */
	:: d_step { trimmed < cur[owner] -> trimmed = cur[owner] }
	/* A sender opens a connection; an older one of its own may deliver still. */
	:: atomic { conns < CONNS ->
			if :: cOwner[conns] = owner :: owner == 1 -> cOwner[conns] = 0 fi;
			dl[conns] = cur[cOwner[conns]]; conns++ }
	/* On one connection. */
	:: atomic { conns > 0 ->
			c = 0;
			do
			:: c + 1 < conns -> c++
			:: break
			od;
			!gone[c];
			if
#ifdef NO_CURSOR
			/* The sender has sent the next commits. */
			:: d_step { cOwner[c] == owner && cur[owner] < endOf[owner] -> cur[owner]++; dcur = cur[owner] }
#endif
			/* The next commit in the log of its sender arrives and is applied. */
			:: d_step { dl[c] < endOf[cOwner[c]] -> dl[c]++; apply(dl[c], key[dl[c]], del[dl[c]]);
#ifdef NO_ACKSYNC
				ackable[c] = dl[c]
#endif
				}
			/* An acknowledgement arrives. */
			:: d_step { ackable[c] > cur[cOwner[c]] -> cur[cOwner[c]] = ackable[c] }
			/* It breaks. */
			:: d_step { ends(c) }
#ifdef SEED
			/* The owner sends a key of the scan as it is now. */
			:: d_step { seeding && cOwner[c] == owner && (!scanned[0] || !scanned[1]) ->
				k = (scanned[0] -> 1 : 0); last = w;
				do
				:: last > 0 && key[last] != k -> last--
				:: else -> break
				od;
				if
#ifdef BYNAME
				:: last > 0 && !del[last] -> scan[c * K + k] = w + 1; scanHas[c * K + k] = last
				:: else -> scan[c * K + k] = w + 1; scanHas[c * K + k] = 0
#else
				:: last > 0 && !del[last] -> scan[c * K + k] = last
				:: else -> scanAcked[k] = true
#endif
				fi;
				scanned[k] = true; scanEnd = w; last = 0; k = 0 }
			:: d_step { scan[c * K] > 0 -> applyScanned(scanHas[c * K], 0, scan[c * K]); scan[c * K] = 0; scanHas[c * K] = 0; applied(c, 0) }
			:: d_step { scan[c * K + 1] > 0 -> applyScanned(scanHas[c * K + 1], 1, scan[c * K + 1]); scan[c * K + 1] = 0; scanHas[c * K + 1] = 0; applied(c, 1) }
#endif
			fi;
			c = 0 };
		check()
#ifndef BYNAME
	/* The receiver is told how far the cursor is and forgets tombstones. */
	:: d_step { cur[owner] > floor && MAYFORGET -> floor = cur[owner]; k = 0;
			do
			:: k < K ->
				if :: dead[k] && ver[k] <= floor -> ver[k] = 0; dead[k] = false :: else fi;
				k++
			:: else -> break
			od; k = 0 };
		check()
#endif
	/* The receiver syncs. */
	:: d_step {
rver[0] = ver[0]; rver[1] = ver[1]; rdead[0] = dead[0]; rdead[1] = dead[1]; rfloor = floor; rmark = mark;
			k = 0;
			do
			:: k < conns -> if :: !gone[k] -> ackable[k] = dl[k] :: else fi; k++
			:: else -> break
			od; k = 0;
			scanAcked[0] = scanAcked[0] || scanApplied[0]; scanAcked[1] = scanAcked[1] || scanApplied[1];
			scanApplied[0] = false; scanApplied[1] = false }
	/* The receiver crashes: connections end. What was not acknowledged of the scan is sent again. */
	:: d_step { crashes < CRASHES -> crashes++;
			ver[0] = rver[0]; ver[1] = rver[1]; dead[0] = rdead[0]; dead[1] = rdead[1]; floor = rfloor; mark = rmark;
			k = 0;
			do
			:: k < conns -> ends(k); k++
			:: else -> break
			od; k = 0;
			scanApplied[0] = false; scanApplied[1] = false; scanned[0] = scanAcked[0]; scanned[1] = scanAcked[1] };
		check()
	/* The owner writes its cursor; the metadata refuse an old owner. */
	:: d_step { dcur < cur[owner] -> dcur = cur[owner] }
	/* Last Sync Time is told. */
	:: d_step { !seeding && claim < cur[owner] -> claim = cur[owner] }; check()
#ifdef SEED
	:: d_step { seeding && scanned[0] && scanned[1] && scanAcked[0] && scanAcked[1] && SEEDED -> seeding = false }; check()
	/* A new owner scans again. */
	:: d_step { seeding && owner == 1 && scanOwner == 0 -> scanOwner = 1; scanned[0] = false; scanned[1] = false; scanAcked[0] = false; scanAcked[1] = false;
		scanApplied[0] = false; scanApplied[1] = false }
#endif
	od
}
