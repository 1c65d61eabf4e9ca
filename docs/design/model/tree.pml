/* tree.pml - changes of a tree of directories that span PartitionNames (tree.md).
 * A row is one step: PartitionNames are linearizable over splits and moves (move.pml, split.pml). A coordinator that
 * crashes or sleeps is a process that is not scheduled any more, or late. A row has: what it holds (id), an operation
 * that is begun at it or decided at it (pend, fin: the row is the operation's primary), or a mark that names operation
 * and primary (mark, prim).
 * SCENE 1  renames of and onto three names, a creator, a reader, somebody who settles what others left
 * SCENE 2  directory D (entry 0 in its parent, its row 1), name 2 in it, name 3 outside: removal of the empty directory
 *          (-DRECURSIVE: of a full one, and the collector), beside a creation in it, a rename into it and one out of it
 * SCENE 3  two renames that would make a cycle, move lock
 * Rules (off with -DNO_<rule>):
 *   BEGIN    the operation is begun at its primary before it marks anything  (off: marks first, as the proposal had it)
 *   DECIDE   it is decided where it is begun and not taken back              (off: decided in any case)
 *   ASK      a reader of a mark asks the primary                             (off: takes the row as it is)
 *   REREAD   if the primary knows nothing, the marked row is read again      (off: believed at once)
 *   FINISH   a primary is changed when its marks are gone                    (off: decided operation is forgotten at once)
 *   ABORT    a mark goes when its operation is taken back or decided         (off: by clock)
 *   FRESH    an attempt to begin has an id of its own                        (off: sent again under the same id)
 *   WRITE    a creation begins at its entry, then reads the directory        (off: reads first)
 *   CREATED  what is created is seen when its directory was read             (off: when its entry is written)
 *   MARK     a removal marks the directory, then looks for entries           (off: looks first)
 *   PENDING  an entry at which an operation is begun is an entry             (off: only what it holds counts)
 *   SETTLE   the collector settles a marked entry and takes no other's       (off: takes it with its mark)
 *   LOCK     a directory goes to another parent under the move lock          (off: no lock)
 *   WALK     the way up is read when the lock is held                        (off: before)
 * S1 no id has two names, S2 none has none unless it was removed, S3 a reader saw what was so between question and answer,
 * S4 what was acknowledged in a directory is not in a removed one, S5 the collector takes nothing that has a name, S6 no cycle
 */
#ifndef SCENE
#define SCENE 1
#endif
#define NE 4
byte id[NE]; byte pend[NE]; byte fin[NE]; byte nid[NE]; byte mark[NE]; byte prim[NE];
byte src[8];                        /* operation -> marked entry; NE: none */
byte dead;                          /* bits of ids that were removed (ghost) */
#define clean(e) (pend[e]==0 && fin[e]==0 && mark[e]==0)
#define shown(e) (fin[e]>0 -> nid[e] : ((mark[e]>0 && fin[prim[e]]==mark[e]) -> 0 : id[e]))
byte vis[NE]; bit was0; bit was1; byte seen;
#if SCENE==1
#define count(x) ((shown(0)==x)+(shown(1)==x)+(shown(2)==x))
inline ghost() {
  if :: shown(0)==0 -> was0=1 :: else -> was1=was1|1 fi;
  assert(count(1)<=1); assert(count(2)<=1); assert(count(3)<=1);      /* S1 */
  assert((dead&2) || count(1)==1); assert((dead&4) || count(2)==1) }  /* S2 */
#else
inline ghost() { skip }
#endif
inline begin(op,to,w) { pend[to]=op; nid[to]=w }
inline decide(x,t) { if :: id[t]>0 && id[t]!=nid[t] -> dead=dead|(1<<id[t]) :: else fi; pend[t]=0; fin[t]=x; ghost() }
inline abort(x,t) { if :: pend[t]==x -> pend[t]=0; nid[t]=0 :: else fi; ghost() }
inline unmark(x,e) { if :: mark[e]==x -> mark[e]=0; prim[e]=0 :: else fi; ghost() }
inline take(x,e) { if :: mark[e]==x -> mark[e]=0; prim[e]=0; id[e]=0 :: else fi; ghost() }
inline finish(x,t) { if :: fin[t]==x -> id[t]=nid[t]; nid[t]=0; fin[t]=0 :: else fi; ghost() }

#if SCENE==1
#ifndef OPS
#define OPS 3
#endif
byte next=1; byte lateop; byte latet; byte latew;
proctype Renamer() { byte x; byte s; byte t; byte v;
end: do
  :: atomic { next<=OPS -> x=next; next++;
       if :: s=0 :: s=1 :: s=2 fi; if :: t=0 :: t=1 :: t=2 fi; s!=t; v=0; src[x]=s }
     do
     :: d_step { clean(s) && id[s]>0 -> v=id[s] } break
     :: goto over
     od;
#ifdef NO_BEGIN
     if :: d_step { clean(s) && id[s]==v -> mark[s]=x; prim[s]=t; ghost() } :: goto over fi;
     if :: d_step { clean(t) -> begin(x,t,v); ghost() } :: goto over fi;
#else
     if :: d_step { clean(t) -> begin(x,t,v); ghost() }
        :: d_step { lateop==0 -> lateop=x; latet=t; latew=v }         /* no answer: perhaps it comes later */
#ifdef NO_FRESH
           if :: d_step { clean(t) -> begin(x,t,v); ghost() } :: goto over fi
#else
           goto over
#endif
        :: goto over fi;
     if :: d_step { clean(s) && id[s]==v -> mark[s]=x; prim[s]=t; ghost() } :: d_step { !(clean(s) && id[s]==v) -> abort(x,t) } goto over fi;
#endif
#ifdef NO_DECIDE
     d_step { nid[t]=v; decide(x,t) };
#else
     if :: d_step { pend[t]==x -> decide(x,t) } :: pend[t]!=x -> goto over fi;
#endif
     d_step { take(x,s) }; d_step { finish(x,t) };
over: skip; d_step { x=0; s=0; t=0; v=0 }
  od }
proctype Late() { d_step { lateop>0 && clean(latet) -> begin(lateop,latet,latew); ghost() } }
proctype Maker() { d_step { clean(0) && id[0]==0 && !(dead&8) -> id[0]=3; ghost() } }
proctype Settler() { byte e; byte x; byte p; byte a;
end: do
  :: d_step { x==0 && pend[0]+pend[1]+pend[2]>0 -> if :: pend[0]>0 -> e=0 :: pend[1]>0 -> e=1 :: else -> e=2 fi; abort(pend[e],e); e=0 }
  :: atomic { if :: e=0 :: e=1 :: e=2 fi; fin[e]>0; x=fin[e] }
#ifndef NO_FINISH
     d_step { take(x,src[x]) };
#endif
     d_step { finish(x,e); e=0; x=0 }
  :: atomic { if :: e=0 :: e=1 :: e=2 fi; mark[e]>0; x=mark[e]; p=prim[e] }
#ifdef NO_ABORT
     d_step { if :: fin[p]==x -> a=1 :: else -> a=0 fi };
#else
     d_step { if :: fin[p]==x -> a=1 :: else -> abort(x,p); a=0 fi };
#endif
     d_step { if :: a -> take(x,e) :: else -> unmark(x,e) fi; e=0; x=0; p=0; a=0 }
  od }
proctype Reader() { byte x; byte p; byte v;
end: do
  :: d_step { was0=0; was1=0; ghost(); x=mark[0]; p=prim[0]; if :: fin[0]>0 -> v=nid[0] :: else -> v=id[0] fi }
#ifndef NO_ASK
again: if :: x>0 -> if
        :: d_step { fin[p]==x -> v=0; x=0 }
        :: d_step { pend[p]==x -> x=0 }
        :: d_step { fin[p]!=x && pend[p]!=x -> skip }
#ifndef NO_REREAD
           d_step { if :: mark[0]==x -> x=0 :: else -> x=mark[0]; p=prim[0]; if :: fin[0]>0 -> v=nid[0] :: else -> v=id[0] fi fi };
           goto again
#endif
        fi :: else fi;
#endif
     d_step { assert((v>0 -> was1 : was0)); x=0; p=0; v=0; was0=0; was1=0 }  /* S3 */
  od }
init { atomic { id[0]=1; id[1]=2; run Renamer(); run Renamer(); run Maker(); run Settler(); run Reader(); run Late() } }
#endif

#if SCENE==2
/* 0: entry of D in its parent, 1: row of D (id 7), 2: a name in D, 3: a name outside. */
bit acked; bit ackmv; bit content4=1; bit gone;
#define alive (shown(0)==7)
inline askD(ok) { if
  :: mark[1]==0 -> ok=(id[1]==7 -> 1 : 0)
  :: mark[1]>0 && fin[0]==mark[1] -> ok=0
  :: mark[1]>0 && fin[0]!=mark[1] -> abort(mark[1],0); mark[1]=0; ok=1
  fi }
proctype Creator() { bit ok;
#ifdef NO_WRITE
  d_step { askD(ok) }; if :: ok -> d_step { if :: clean(2) && id[2]==0 -> id[2]=5 :: else -> ok=0 fi } :: else fi;
#else
#ifdef NO_CREATED
  d_step { clean(2) && id[2]==0 -> id[2]=5 }; d_step { askD(ok) };
#else
  d_step { clean(2) && id[2]==0 -> begin(4,2,5) }; d_step { askD(ok) };
  d_step { if :: ok && pend[2]==4 -> decide(4,2); finish(4,2) :: else -> abort(4,2); ok=0 fi };
#endif
#endif
  d_step { if :: ok ->
#ifndef RECURSIVE
    assert(alive);                                                   /* S4 */
#endif
    acked=1 :: else fi } }
proctype Into() { bit ok;                                            /* 3 -> 2, operation 2 */
  d_step { id[3]==6 && clean(2) && id[2]==0 -> begin(2,2,6) }; d_step { askD(ok) };
  if :: ok && pend[2]==2 -> d_step { clean(3) && id[3]==6 -> mark[3]=2; prim[3]=2 };
     if :: d_step { pend[2]==2 -> decide(2,2);
#ifndef RECURSIVE
        assert(alive)                                                /* S4 */
#endif
        } ; d_step { take(2,3) }; d_step { finish(2,2) }
        :: d_step { pend[2]!=2 -> unmark(2,3) } fi
  :: else -> d_step { abort(2,2) } fi }
proctype Remover() { bit none;
#ifdef RECURSIVE
  d_step { clean(0) && id[0]==7 -> begin(1,0,0) }; d_step { pend[0]==1 -> decide(1,0) };
#else
  d_step { clean(0) && id[0]==7 -> begin(1,0,0) };
#ifdef NO_MARK
  d_step { none=(id[2]==0 && pend[2]==0 && fin[2]==0) }; d_step { clean(1) -> mark[1]=1; prim[1]=0 };
#else
  d_step { clean(1) -> mark[1]=1; prim[1]=0 };
#ifdef NO_PENDING
  d_step { none=(id[2]==0 && fin[2]==0) };
#else
  d_step { none=(id[2]==0 && pend[2]==0 && fin[2]==0) };
#endif
#endif
  if :: none -> if :: d_step { pend[0]==1 -> decide(1,0); assert(!acked && shown(2)==0) } :: pend[0]!=1 -> goto over fi   /* S4 */
     :: else -> d_step { abort(1,0); unmark(1,1) } goto over fi;
#endif
  d_step { mark[1]=0; id[1]=0 }; gone=1; d_step { finish(1,0) };
over: skip }
#ifdef RECURSIVE
proctype Out() {                                                      /* 2 -> 3, operation 3: id 4 leaves D */
  d_step { id[2]==4 && clean(3) && id[3]==0 -> begin(3,3,4) };
  if :: d_step { clean(2) && id[2]==4 -> mark[2]=3; prim[2]=3 } :: d_step { !(clean(2) && id[2]==4) -> abort(3,3) } goto over fi;
  if :: d_step { pend[3]==3 -> decide(3,3); assert(content4) } ; d_step { take(3,2) }; d_step { finish(3,3) } :: pend[3]!=3 fi;
over: skip }
proctype Collector() { byte x; byte p;
  gone;
  do
  :: d_step { mark[2]>0 -> x=mark[2]; p=prim[2] }
#ifndef NO_SETTLE
     d_step { if :: fin[p]==x -> take(x,2) :: else -> abort(x,p); unmark(x,2) fi; x=0; p=0 }
#else
     d_step { mark[2]=0; id[2]=0; content4=0; assert(shown(3)!=4) }   /* S5 */ break
#endif
  :: d_step { mark[2]==0 && pend[2]==0 && fin[2]==0 && id[2]==4 -> id[2]=0; content4=0; assert(shown(3)!=4) }   /* S5 */ break
  od }
#endif
init { atomic { id[0]=7; id[1]=7;
#ifdef RECURSIVE
  id[2]=4; run Out(); run Collector();
#else
  id[3]=6; run Into(); run Creator();
#endif
  run Remover() } }
#endif

#if SCENE==3
/* Directories 1 and 2 in the root: entries 0 and 1. Operation x moves directory x into the other one, under entry 1+x. */
byte lock; byte lockprim;
#define into2 (shown(2)==1)
#define into1 (shown(3)==2)
proctype Mover(byte x) { bit ok; byte s; byte t;
  d_step { s=x-1; t=x+1; src[x]=s }; d_step { clean(t) -> begin(x,t,x) };
#ifdef NO_WALK
  d_step { ok = (x==1 -> !into1 : !into2) };
#endif
#ifndef NO_LOCK
  if :: d_step { lock==0 -> lock=x; lockprim=t } :: d_step { lock>0 && lock!=x -> abort(x,t) } goto over fi;
#endif
#ifndef NO_WALK
  d_step { ok = (x==1 -> !into1 : !into2) };
#endif
  if :: !ok -> d_step { abort(x,t) } goto free :: else fi;
  if :: d_step { clean(s) && id[s]==x -> mark[s]=x; prim[s]=t } :: d_step { !(clean(s) && id[s]==x) -> abort(x,t) } goto free fi;
  if :: d_step { pend[t]==x -> decide(x,t); assert(!(into1 && into2)) } :: pend[t]!=x -> goto free fi;   /* S6 */
  d_step { take(x,s) };
free: skip; d_step { if :: lock==x -> lock=0 :: else fi }; d_step { finish(x,t) };
over: skip }
proctype LockSettler() { byte x; byte p;
end: do
  :: d_step { lock>0 -> x=lock; p=lockprim }
#ifndef NO_ABORT
     d_step { abort(x,p) };
#endif
     d_step { if :: lock==x -> lock=0 :: else fi; x=0; p=0 }
  od }
init { atomic { id[0]=1; id[1]=2; run Mover(1); run Mover(2); run LockSettler() } }
#endif
