/* geo-lineage.pml - restores of the metadata store at the primary and at the secondary of an account (../geo-shipping.md "Lineage").
 * One range, one PartitionName with two rows. A commit writes one row, with a value that no other commit has. A restore at the primary takes the
 * end of its log back, and sequences come again; a restore at the secondary takes rows and marker back to a moment before, together.
 * The sender's cursor is in the primary's own metadata. A message may be late, and then nobody hears of it.
 * Rules (off with -DNO_<rule>):
 *   LINEAGE  versions carry the lineage of the primary's log, before the sequence
 *   ENDS     a load under a later lineage ends the follower: the rows are seeded again
 *   COPY     the secondary refuses commits for rows that were seeded before its own store was put back
 *   TELL     the secondary takes a report only if the rows were seeded under its own lineage
 * P1  when a report says that everything is shipped, and is taken, the secondary has what the primary has
 */
#ifndef MAXN
#define MAXN 4			/* sequences of the log */
#endif
#ifndef IDS
#define IDS 5			/* commits */
#endif
#ifndef RP
#define RP 2			/* restores at the primary */
#endif
#ifndef RS
#define RS 2			/* restores at the secondary */
#endif

/* Primary: log (row and value of each commit), its state, lineage; follower. */
bool row[MAXN + 1]; byte id[MAXN + 1];
byte n = 0, ids = 0, x = 0, y = 0, L = 0, lineages = 0;
bool follower = false, seeded = false; byte cur = 0, held = 0, known = 0;
/* Secondary: state, marker, lineage of its store; what a restore brings back. */
byte rx = 0, ry = 0, ml = 0, ms = 0, rl = 0;
byte sx = 0, sy = 0, sml = 0, sms = 0;
byte rps = 0, rss = 0;
/* Late message: 1 a commit, 2 a scan. */
byte late = 0, lL, lheld, lseq, lx, ly; bool lrow; byte lid;
byte taken = 0;			/* 1: the message counts as applied */

#ifdef NO_COPY
#define COPY_(h) false
#else
#define COPY_(h) (h < rl)
#endif
#ifdef NO_TELL
#define TELL_ true
#else
#define TELL_ (held >= rl)
#endif
#define ABOVE(l, s) (l > ml || (l == ml && s > ms))

inline ship(l, h, s, r, v) {
	if
	:: COPY_(h) -> taken = 0
	:: else ->
		taken = 1;
		if
		:: ABOVE(l, s) -> if :: r -> rx = v :: else -> ry = v fi; ml = l; ms = s
		:: else
		fi
	fi
}
inline scan(l, s, vx, vy) {
	taken = 1;
	if
	:: ABOVE(l, s) -> rx = vx; ry = vy; ml = l; ms = s
	:: else
	fi
}

active proctype All() {
	byte i;
end:	do
	:: d_step { n < MAXN && ids < IDS -> n++; ids++; row[n] = true; id[n] = ids; x = ids }
	:: d_step { n < MAXN && ids < IDS -> n++; ids++; row[n] = false; id[n] = ids; y = ids }
	/* the follower begins; then the scan; then commits */
	:: d_step { !follower -> follower = true; seeded = false; cur = n; held = known }
	:: d_step { follower && !seeded -> scan(L, n, x, y); seeded = true }
	:: d_step { follower && !seeded && late == 0 -> late = 2; lL = L; lseq = n; lx = x; ly = y }
	:: d_step { follower && seeded && cur < n -> ship(L, held, cur + 1, row[cur + 1], id[cur + 1]); if :: taken -> cur++ :: else fi }
	:: d_step { follower && seeded && cur < n && late == 0 ->
		late = 1; lL = L; lheld = held; lseq = cur + 1; lrow = row[cur + 1]; lid = id[cur + 1] }
	:: d_step { late == 1 -> ship(lL, lheld, lseq, lrow, lid); late = 0; lL = 0; lheld = 0; lseq = 0; lrow = false; lid = 0 }
	:: d_step { late == 2 -> scan(lL, lseq, lx, ly); late = 0; lL = 0; lseq = 0; lx = 0; ly = 0 }
	:: late != 0 -> d_step { late = 0; lL = 0; lheld = 0; lseq = 0; lrow = false; lid = 0; lx = 0; ly = 0 }
	/* the primary's log loses its last commits; the cursor may be from before as well */
	:: atomic { rps < RP && n > 0 -> rps++; lineages++;
		do :: n > 0 -> row[n] = false; id[n] = 0; n-- :: break od;
		do :: cur > 0 -> cur-- :: break od;
		x = 0; y = 0;
		for (i : 1 .. n) { if :: row[i] -> x = id[i] :: else -> y = id[i] fi }
		i = 0;
#ifndef NO_LINEAGE
		L = lineages;
#endif
#ifdef NO_ENDS
		if :: cur > n -> follower = false; seeded = false; cur = 0; held = 0 :: else fi
#else
		follower = false; seeded = false; cur = 0; held = 0
#endif
		}
	:: d_step { !(sx == rx && sy == ry && sml == ml && sms == ms) -> sx = rx; sy = ry; sml = ml; sms = ms }
	:: d_step { rss < RS -> rss++; rl++; rx = sx; ry = sy; ml = sml; ms = sms }
	/* the sender hears of the secondary's lineage */
	:: d_step { known < rl -> known = rl; if :: follower && held < known -> follower = false; seeded = false; cur = 0; held = 0 :: else fi }
	:: follower && seeded && cur == n && TELL_ -> assert(rx == x && ry == y)	/* P1 */
	od
}
