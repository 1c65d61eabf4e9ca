/* coding.pml - one sealed extent becomes fragments and replicas again (erasure-coding.md "Protocol").
 * Three replicas (nodes 0 to 2), three fragments (other nodes 0 to 2; two of them give the extent back). The metadata store is linearizable: a
 * transaction is one step. Two stream managers: the second takes over at any step and the first goes on without knowing. Commands to nodes
 * arrive at any later time, in any order, or never. A node may lose its disk; a replica may hold wrong bytes that nobody has noticed.
 *   code:   begin (record an attempt) | a replica's node writes the fragments | verify by decoding | commit (kind, version, places) | delete replicas
 *   repair: begin | copy, or compute a fragment from two others | look | commit; a repair of a replica ends an attempt at coding
 *   decode: begin | write three replicas | verify | commit
 *   abort:  take the attempt back | delete its fragments
 *   garbage: a node reports a file; what no record names is deleted
 * Rules (off with -DNO_<rule>):
 *   CAS         a transaction is conditional on the extent's version
 *   TERM        and on the manager's term
 *   FRESH       an attempt has a version that no attempt had before
 *   WRITEONCE   a node that has a fragment of a version refuses another one of that version
 *   SYNC        a fragment is durable before it is acknowledged
 *   VERIFY      what was stored is decoded and compared with the extent's checksum before the commit
 *   COMMITFIRST replicas are deleted after the commit
 *   ABORTFIRST  fragments of an attempt are deleted after it was taken back
 *   DELVER      a deletion names the version it is for; a node keeps a file of a higher one
 *   NOTNEWER    a manager takes no file of a higher version than it knows for garbage
 *   PENDKEEP    nor one of the attempt under way
 * F1  a replicated extent has a good replica where the record says
 * F2  a coded extent has as many good fragments where the record says as its code promises, less the disks that were lost
 */
#ifndef MAXV
#define MAXV 6
#endif
#ifndef WIPES
#define WIPES 1
#endif
#ifndef ROTS
#define ROTS 1
#endif
#ifndef CRASHES
#define CRASHES 1
#endif
#define bitof(v) (1<<(v))
#define REPL 0
#define CODED 1
#define CODING 1
#define FRAGREP 2
#define REPREP 3
#define DECODING 4
byte sTerm=1, sVer=1, sKind=REPL, sPend, sPk, sPx; byte sFrag[3]; byte sRep[3]=1;      /* the metadata store */
byte rVer[3]=1; bit rRot[3];                                                           /* replicas on disks: version, 0 none */
byte good[3], rot[3], unsynced[3];                                                     /* fragments on disks: a bit for each version */
byte wGood[3], wRot[3], delF[3], delR[3], copy[3];                                     /* commands on their way */
byte wipes, rots, crashes, fragWipes;                                                  /* faults so far (fragWipes: ghost) */

inline remember() { mVer=sVer; mKind=sKind; mPend=sPend; mPk=sPk; mPx=sPx; mDone=0; i=0;
  do :: i<3 -> mFrag[i]=sFrag[i]; mRep[i]=sRep[i]; i++ :: else -> break od; i=0 }

#ifdef NO_CAS
#define casOk 1
#else
#define casOk (sVer==mVer)
#endif
#ifdef NO_TERM
#define termOk 1
#else
#define termOk (sTerm==me)
#endif
#ifdef NO_NOTNEWER
#define known(v) 1
#else
#define known(v) ((v)<=mVer)
#endif
#ifdef NO_PENDKEEP
#define idle(v) 1
#else
#define idle(v) ((v)!=mPend)
#endif
#ifdef NO_VERIFY
#define verified 1
#else
#define verified (sound(0,mPend) && sound(1,mPend) && sound(2,mPend))
#endif
#define has(i,v) ((good[i]|rot[i]|unsynced[i]) & bitof(v))
#define sound(i,v) (((good[i]|unsynced[i]) & bitof(v)) && !(rot[i] & bitof(v)))
#define goodFrag(i) (mFrag[i]>0 && (good[i] & bitof(mFrag[i])))
#define twoGood ((goodFrag(0)&&goodFrag(1))||(goodFrag(0)&&goodFrag(2))||(goodFrag(1)&&goodFrag(2)))
#define inPlace(n) (rVer[n]==mRep[n])
#define files(n) (good[n]|rot[n]|unsynced[n])
#define goodRep(n) (mRep[n]>0 && rVer[n]==mRep[n] && !rRot[n])

/* Begins an attempt: pk, px. */
inline begin(pk,px) {
  if :: casOk && termOk && sVer<MAXV -> sVer++; sPk=pk; sPx=px;
#ifdef NO_FRESH
        sPend=2;
#else
        sPend=sVer;
#endif
        remember()
     :: else -> remember()
  fi }
#define toAll(w) i=0; do :: i<3 -> w[i]=w[i]|bitof(mPend); i++ :: else -> break od; i=0
inline commitCoded() { sKind=CODED; i=0; do :: i<3 -> sFrag[i]=mPend; sRep[i]=0; i++ :: else -> break od; i=0; sPend=0; sPk=0; sPx=0; sVer++ }
inline deleteReplicas() { i=0; do :: i<3 -> if :: mRep[i]>delR[i] -> delR[i]=mRep[i] :: else fi; i++ :: else -> break od; i=0 }
inline deleteFragments() { i=0; do :: i<3 -> if :: mPk==CODING || (mPk==FRAGREP && mPx==i) -> delF[i]=delF[i]|bitof(mPend) :: else fi; i++ :: else -> break od; i=0 }

proctype Manager(byte me) { byte mVer, mKind, mPend, mPk, mPx; byte mFrag[3], mRep[3]; bit mDone; byte i, n, v;
  d_step { me==1 || sTerm==1 -> sTerm=me; remember() };
end: do
  /* code */
  :: d_step { mKind==REPL && mPend==0 && mVer+1<MAXV -> begin(CODING,0) }
  :: d_step { mPk==CODING && ((rVer[0]>0 && !rRot[0]) || (rVer[1]>0 && !rRot[1]) || (rVer[2]>0 && !rRot[2])) -> toAll(wGood) }
  :: d_step { mPk==CODING && (rRot[0] || rRot[1] || rRot[2]) -> toAll(wRot) }
  :: d_step { mPk==CODING && !mDone && has(0,mPend) && has(1,mPend) && has(2,mPend) && verified -> mDone=1 }
#ifdef NO_COMMITFIRST
  :: d_step { mPk==CODING && mDone -> deleteReplicas() }
#endif
  :: d_step { mPk==CODING && mDone ->
       if :: casOk && termOk && sVer<=MAXV -> commitCoded(); deleteReplicas(); remember()
          :: else -> remember() fi }
  /* abort */
#ifdef NO_ABORTFIRST
  :: d_step { mPend>0 -> deleteFragments() }
#endif
  :: d_step { mPend>0 && mVer<MAXV ->
       if :: casOk && termOk -> sPend=0; sPk=0; sPx=0; sVer++; deleteFragments(); remember()
          :: else -> remember() fi }
  /* repair of a fragment */
  :: atomic { mKind==CODED && mPend==0 && mVer+1<MAXV && !(goodFrag(0) && goodFrag(1) && goodFrag(2)) ->
       if :: !goodFrag(0) -> n=0 :: !goodFrag(1) -> n=1 :: !goodFrag(2) -> n=2 fi; d_step { begin(FRAGREP,n); n=0 } }
  :: d_step { mPk==FRAGREP && twoGood -> wGood[mPx]=wGood[mPx]|bitof(mPend) }
  :: d_step { mPk==FRAGREP && !mDone && sound(mPx,mPend) -> mDone=1 }
  :: d_step { mPk==FRAGREP && mDone ->
       if :: casOk && termOk -> sFrag[mPx]=mPend; sPend=0; sPk=0; sPx=0; sVer++; remember()
          :: else -> remember() fi }
  /* repair of a replica: ends an attempt at coding */
  :: atomic { mKind==REPL && (mPend==0 || mPk==CODING) && mVer+1<MAXV && !(inPlace(0) && inPlace(1) && inPlace(2)) ->
       if :: !inPlace(0) -> n=0 :: !inPlace(1) -> n=1 :: !inPlace(2) -> n=2 fi; d_step { begin(REPREP,n); n=0 } }
  :: d_step { mPk==REPREP && (goodRep(0)||goodRep(1)||goodRep(2)) -> copy[mPx]=mPend }
  :: d_step { mPk==REPREP && !mDone && rVer[mPx]==mPend -> mDone=1 }
  :: d_step { mPk==REPREP && mDone ->
       if :: casOk && termOk -> sKind=REPL; sRep[mPx]=mPend; sPend=0; sPk=0; sPx=0; sVer++;
#ifdef NO_CAS
             i=0; do :: i<3 -> if :: i!=mPx -> sRep[i]=mRep[i] :: else fi; i++ :: else -> break od; i=0;
#endif
             remember()
          :: else -> remember() fi }
  /* decode */
  :: d_step { mKind==CODED && mPend==0 && mVer+1<MAXV -> begin(DECODING,0) }
  :: d_step { mPk==DECODING && twoGood -> i=0; do :: i<3 -> copy[i]=mPend; i++ :: else -> break od; i=0 }
  :: d_step { mPk==DECODING && !mDone && rVer[0]==mPend && rVer[1]==mPend && rVer[2]==mPend -> mDone=1 }
  :: d_step { mPk==DECODING && mDone ->
       if :: casOk && termOk -> sKind=REPL; i=0; do :: i<3 -> sRep[i]=mPend; sFrag[i]=0; i++ :: else -> break od; i=0; sPend=0; sPk=0; sPx=0; sVer++; remember()
          :: else -> remember() fi }
  /* garbage: any file of one node */
  :: atomic { (files(0)|files(1)|files(2))>0 -> if :: files(0)>0 -> n=0 :: files(1)>0 -> n=1 :: files(2)>0 -> n=2 fi;
       v=2; do :: v<MAXV && (files(n)>>(v+1))>0 -> v++ :: break od;
       d_step { if :: has(n,v) && !(mKind==CODED && mFrag[n]==v) && known(v) && idle(v) -> delF[n]=delF[n]|bitof(v) :: else fi; n=0; v=0 } }
  :: atomic { (rVer[0]|rVer[1]|rVer[2])>0 -> if :: rVer[0]>0 -> n=0 :: rVer[1]>0 -> n=1 :: rVer[2]>0 -> n=2 fi;
       d_step { if :: !(mKind==REPL && mRep[n]==rVer[n]) && known(rVer[n]) && idle(rVer[n]) && rVer[n]>delR[n] -> delR[n]=rVer[n] :: else fi; n=0 } }
  :: d_step { sTerm!=me -> remember(); mPend=0; mPk=0 } -> break                       /* deposed, and knows it */
  od }

#ifdef NO_WRITEONCE
#define put(into) good[n]=good[n] & ~bitof(v); rot[n]=rot[n] & ~bitof(v); into[n]=into[n]|bitof(v)
#else
#define put(into) if :: has(n,v) -> skip :: else -> into[n]=into[n]|bitof(v) fi
#endif
/* A write command arrives: of the versions on their way, any. */
#define arrive(from,into) atomic { from[n]>0 -> v=2; do :: v<MAXV && !(from[n] & bitof(v)) -> v++ :: from[n] & bitof(v) -> break :: v<MAXV && (from[n]>>(v+1))>0 -> v++ od; \
  d_step { from[n]=from[n] & ~bitof(v); put(into); v=0 } }
#ifdef NO_SYNC
#define into unsynced
#else
#define into good
#endif
#ifdef NO_DELVER
#define older (delR[n]>0)
#else
#define older (rVer[n]<=delR[n])
#endif

proctype Net(byte n) { byte v;
end: do
  :: arrive(wGood, into)
  :: arrive(wRot, rot)
  :: d_step { unsynced[n]>0 -> good[n]=good[n]|unsynced[n]; unsynced[n]=0 }
  :: d_step { delF[n]>0 -> good[n]=good[n] & ~delF[n]; rot[n]=rot[n] & ~delF[n]; unsynced[n]=unsynced[n] & ~delF[n]; delF[n]=0 }
  :: d_step { delR[n]>0 -> if :: older -> rVer[n]=0; rRot[n]=0 :: else fi; delR[n]=0 }
  :: d_step { copy[n]>0 -> if :: copy[n]>rVer[n] -> rVer[n]=copy[n]; rRot[n]=0 :: else fi; copy[n]=0 }
  /* faults */
  :: d_step { wipes<WIPES && rVer[n]>0 -> wipes++; rVer[n]=0; rRot[n]=0 }
  :: d_step { wipes<WIPES && (good[n]|rot[n]|unsynced[n])>0 -> wipes++; fragWipes++; good[n]=0; rot[n]=0; unsynced[n]=0 }
  :: d_step { rots<ROTS && rVer[n]>0 -> rots++; rRot[n]=1 }
  :: d_step { crashes<CRASHES && unsynced[n]>0 -> crashes++; unsynced[n]=0 }
  od }

#define repOk(n) (sRep[n]>0 && rVer[n]==sRep[n] && !rRot[n])
#define fragOk(n) (sFrag[n]>0 && ((good[n]|unsynced[n]) & bitof(sFrag[n])))
proctype Judge() {
  atomic { if
    :: sKind==REPL && !(repOk(0)||repOk(1)||repOk(2)) -> assert(false)                 /* F1 */
    :: sKind==CODED && (fragOk(0)+fragOk(1)+fragOk(2)) + fragWipes < 3 -> assert(false) /* F2 */
    fi } }

init { atomic { run Manager(1); run Manager(2); run Net(0); run Net(1); run Net(2); run Judge() } }
