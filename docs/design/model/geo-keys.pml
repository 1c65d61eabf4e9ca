/* geo-keys.pml - hand-over of an account's keys and settings from the primary's stamp to its copy (../geo.md "Keys and settings").
 * One account. Stamp P has it, stamp C gets a copy that may be given up and begun again, and is promoted in the end. Keys are numbers that only rise.
 * The location service L commands; it sees a tag of the keys only, here the number itself. Words of P to C may be late, and may be of an earlier copy.
 * A front-end of C may be hostile: it says what P has not said (key EVIL), if -DHOSTILE is given.
 * Rules (off with -DNO_<rule>):
 *   WIPE     remove takes the keys out of C's row
 *   EMPTY    a copy begins without keys, and counts as complete only if it has some
 *   PAIRED   a word names the operation that began the copy, and C takes words about the copy that it has only
 *   CAS      a word with keys names the keys that it replaces, and C takes it only if its row still has these
 *   TAG      the promotion carries what L read at the drained primary, and is refused if C's row has another
 *   QUIET    P takes no change of keys while it is drained
 * P1_promoted   no copy is promoted with keys that the primary did not have at its end
 * P2_role       no stamp without a role holds the keys
 * P3_rotated    a complete copy takes no keys that were replaced before others were said to be in force, and is never without keys
 */
#ifndef KEYS
#define KEYS 3			/* keys that P makes */
#endif
#ifndef COPIES
#define COPIES 2		/* copies that L begins */
#endif
#define EVIL 99

byte pKey = 1; bool drained = false;		/* P: its keys */
byte pPaired = 0;				/* P: copy that it pushes to; 0: none */
byte pConfirmed = 0;				/* P: keys that this copy has confirmed; 0: none */
bool follows = false; byte cPaired = 0, cKey = 0;	/* C: its row */
bool complete = false, promoted = false;
byte begun = 0, tag = 0;
byte inForce = 1;				/* keys of which P's operator has heard that they are in force everywhere */

/* A word with keys that is on its way: of which copy, keys, keys that it replaces. Two at most. */
bool w[2]; byte wPaired[2], wKey[2], wOld[2];

#ifdef NO_PAIRED
#define PAIRED_(i) true
#else
#define PAIRED_(i) (wPaired[i] == cPaired)
#endif
#ifdef NO_CAS
#define CAS_(i) true
#else
#define CAS_(i) (wOld[i] == cKey)
#endif
#ifdef NO_EMPTY
#define EMPTY_ true
#else
#define EMPTY_ (cKey > 0)
#endif
#ifdef NO_QUIET
#define QUIET_ true
#else
#define QUIET_ (!drained)
#endif

proctype Primary() {
	byte i;
end:	do
	:: d_step { pKey < KEYS && QUIET_ && !promoted -> pKey++; pConfirmed = 0;		/* a person rotates the keys */
		if :: pPaired == 0 -> inForce = pKey :: else fi }
	/* C has answered that it wants keys, and which it has */
	:: d_step { pPaired > 0 && follows && cPaired == pPaired && cKey != pKey && !promoted && (!w[0] || !w[1]) ->
		i = (w[0] -> 1 : 0); w[i] = true; wPaired[i] = pPaired; wKey[i] = pKey; wOld[i] = cKey }
	/* a word without keys: C's row has them */
	:: d_step { pPaired > 0 && follows && cPaired == pPaired && cKey == pKey && pConfirmed != pKey && !promoted -> pConfirmed = pKey; inForce = pKey }
	od
}

proctype Copy() {
	byte i;
end:	do
	:: d_step { w[0] -> i = 0; if :: follows && !promoted && PAIRED_(0) && CAS_(0) -> cKey = wKey[0] :: else fi; w[0] = false }
	:: d_step { w[1] -> i = 1; if :: follows && !promoted && PAIRED_(1) && CAS_(1) -> cKey = wKey[1] :: else fi; w[1] = false }
	:: d_step { follows && !complete && EMPTY_ -> complete = true }				/* all rows are there */
#ifdef HOSTILE
	:: d_step { follows && !promoted && cKey > 0 -> cKey = EVIL }
#endif
	od
}

proctype Location() {
end:	do
	:: d_step { !follows && !promoted && begun < COPIES -> begun++; follows = true; complete = false; cPaired = begun;
#ifndef NO_EMPTY
		cKey = 0;
#endif
		pPaired = begun; pConfirmed = 0 }
	:: d_step { follows && !drained && !promoted -> follows = false; complete = false; pPaired = 0; pConfirmed = 0; inForce = pKey;
#ifndef NO_WIPE
		cKey = 0
#endif
		}
	:: d_step { follows && complete && !drained && pConfirmed == pKey && !promoted -> drained = true; tag = 0 }
	:: d_step { drained && !promoted -> drained = false; tag = 0 }				/* it takes too long */
	:: d_step { drained && !promoted && pConfirmed == pKey && cKey == pKey -> tag = pKey }	/* compared: everything is shipped */
#ifdef NO_TAG
	:: d_step { drained && !promoted && tag > 0 -> promoted = true }
#else
	:: d_step { drained && !promoted && tag > 0 && cKey == tag -> promoted = true }		/* one transaction of C's row */
#endif
	od
}

proctype Judge() {
end:	do
	:: d_step { promoted && cKey != pKey -> printf("P1_promoted\n"); assert(false) }
	:: d_step { !follows && !promoted && cKey > 0 -> printf("P2_role\n"); assert(false) }
#ifndef HOSTILE
	:: d_step { follows && complete && cKey < inForce -> printf("P3_rotated\n"); assert(false) }
#endif
	od
}

init { atomic { run Primary(); run Copy(); run Location(); run Judge() } }
