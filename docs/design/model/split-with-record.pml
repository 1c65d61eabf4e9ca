/* split-with-record.pml - split of range partition B into C and D by a last record: how splits ran before decision 0340, and how each of two parents
 * still leaves in a merge; a merge itself is not modelled.
 *
 * D behaves as C (same transaction, same owner), so only C is carried, with the one key it owns: a register.
 * Leases are reduced to one bit per server ("may still believe"): move.pml is about them. A server whose lease ended goes
 * on as a zombie: it may append and call MultiModify, and answer no read.
 * PM crash = volatile pc is lost, the map record (m, mo, me, mc) stays; the new leader starts from the record.
 * The last record is an append to B's metadata under B's owner epoch, in flight for any time: it lands or not, and its answer may be lost; then PS serves B no
 * more and sends no MultiModify. Whoever loads B finds it, beside the log. One write a server is in flight: order among several that go along is not modelled,
 * nor that the log may have again what the record has (the greater value counts).
 * Close is one step (PS drops, PM hears). MultiModify is a message: delivered at any later time, its answer may be lost.
 * Rules (off with -DNO_<rule>), in the text:
 *   NAMEFIRST names recorded before MultiModify
 *   ASKSM     a new leader asks SM whether the names exist      (off: it always goes back)
 *   MMEPOCH   MultiModify is refused below the recorded owner epoch
 * not in the text, or not clearly:
 *   FENCEASK  whoever resolves a split raises B's owner epoch at SM first and asks afterwards  (off: only asks)
 *   LISTVER   MultiModify names the list versions it was computed from; a PS that resumes B allocates a new log extent first
 *   DRAIN     what is decided and not durable goes along in the last record: PS waits for no append to B's log, and the record has the write whose
 *             append is in flight or not sent yet  (off: the record has only what was applied)
 *   RECACK    a write that went along is acknowledged when its append to the log or the record is durable  (off: when the record was sent)
 *   RECFIRST  MultiModify is sent when the record is known to be durable  (off: it may be sent while the record is in flight)
 *   ENDS      whatever becomes of the split, PS serves B no more before it is loaded again under another epoch (as the code does; off: it resumes B
 *             when it has no answer or is refused, which needs LISTVER)
 * With -DDATA=n (n appends to blob data; 0: none):
 *   IDLE      PS says where B's blob data end only when none of its appends there is in flight
 *   CERTAIN   ... and has the stream opened anew, which fences its extent, when one of them got no answer
 *   CLOSEALL  Close for a child also ends the parent's pending split on that server
 * With -DPREP: a server that could not prepare the split says so, and PM takes the record back without a fence
 *   ONCE      what a server said that it did not begin it never begins (off: the command reaches it twice)
 */
#ifndef W
#define W 2
#endif
#ifndef MAXEP
#define MAXEP 5
#endif
#ifndef PMC
#define PMC 1       /* PM crashes */
#endif
#ifndef LE
#define LE 1        /* leases lost */
#endif
#define MX(a,b) ((a)>(b) -> (a) : (b))
#ifdef NO_NAMEFIRST
#define NAMEF 0
#else
#define NAMEF 1
#endif
#ifdef NO_ASKSM
#define ASK 0
#else
#define ASK 1
#endif
#ifdef NO_MMEPOCH
#define MMOK true
#else
#define MMOK (mm_ep>=epB)
#endif
#ifdef NO_LISTVER
#define VEROK true
#define NEWLOG
#else
#define VEROK (mm_ver==verB)
#define NEWLOG verB++;
#endif
#ifdef NO_DRAIN
#define ALONG(s) false
#else
#define ALONG(s) (pw[s]>vB[s] && !pa[s] && (!fl[s] || (!fC[s] && fe[s]==eB[s])))
#endif
#ifdef NO_RECACK
#define RECACK 0
#else
#define RECACK 1
#endif
#ifdef NO_RECFIRST
#define RECORDED(s) (sB[s]>=3)
#define HEIRS (rp[mm_s]==mm_ep -> 0 : mm_v)                                 /* what they find: nothing, without the record */
#else
#define RECORDED(s) (sB[s]==4)
#define HEIRS mm_v
#endif
#ifdef NO_FENCEASK
#define FENCE 0
#else
#define FENCE 1
#endif
#ifndef DATA
#define DATA 0
#endif
#ifdef NO_IDLE
#define IDLE(s) true
#else
#define IDLE(s) (!df[s])
#endif
#ifdef NO_CERTAIN
#define CERTAIN 0
#else
#define CERTAIN 1
#endif
#ifdef NO_ENDS
#define ENDS 0
#else
#define ENDS 1
#endif
#ifdef NO_ONCE
#define FORGET
#else
#define FORGET cmd=0; cmdc=0;
#endif
#ifdef NO_CLOSEALL
#define CLOSEALL 0
#else
#define CLOSEALL 1
#endif
/* stream manager: B exists, C exists under name exC (0 no); owner epochs; last value in each; version of B's lists */
bit exB=1; byte exC; byte epB=1; byte epC; byte lB; byte lC; byte verB;
/* partition servers */
bit ok[2];                                   /* lease may be valid in its own eyes */
byte sB[2]; byte eB[2]; byte vB[2];          /* B: 0 no 1 serving; stopped for the split: 3 record sent 4 it is durable 2 MultiModify sent */
bit sC[2]; byte eC[2]; byte vC[2];
byte pw[2]; bit fl[2]; bit fC[2]; bit pa[2]; byte fe[2]; /* a write: waiting; append in flight (to C?, epoch); append succeeded */
byte rp[2]; byte rr[2]; byte rc[2]; bit al[2];  /* last record: epoch of the one in flight; its value; name of the child; pw went along, not known durable */
/* MultiModify under way */
bit mm; byte mm_s; byte mm_ep; byte mm_ver; byte mm_v; byte mm_c; byte res; /* res: 1 done 2 refused */
byte rep;                                    /* PS -> PM: split under this name is done */
byte nb;                                     /* PS -> PM: split under this name was not begun */
/* the extent of B's blob data that is open. It is made under epoch dEp; whoever loads B seals it with a fence at its length, and what it writes
 * after that is another extent, which this model does not follow. */
byte dLen; byte dAck; bit dFenced; byte dN; byte dEp=1; byte dSealed=255;   /* appended; end of what a client was told; at the nodes; so many; owner; by MultiModify */
bit df[2]; bit du[2]; byte dK[2]; byte mm_d;                              /* in flight; one got no answer; the end as the server knows it; MultiModify says */
#define DSTATE(s) (sB[s]>0 && eB[s]==dEp)
#define BACK(s,v) if :: !ENDS && exB && epB==eB[s] -> NEWLOG sB[s]=1; vB[s]=MX(vB[s],v) :: else -> dropB(s) fi
/* map record; PM */
byte m; byte mo; byte me=1; byte mc; byte minted=1; byte pc; byte cmd; byte cmdc; bit ans; byte fe_; byte crashes; byte lends;
byte floor_; byte wv; byte rpc; byte rs; byte rv; byte rf;
#define SRV(s) (sB[s]==1 || sC[s])
#define VAL(s) (sC[s] -> vC[s] : vB[s])

inline dropB(s) { sB[s]=0; eB[s]=0; vB[s]=0; rc[s]=0; rr[s]=(rp[s]>0 -> rr[s] : 0) }
inline dropC(s) { sC[s]=0; eC[s]=0; vC[s]=0 }
#define RECLANDS(s) (rp[s]>0 && exB && epB==rp[s])
/* of what went along only its append to the log can tell from now on, if it was sent */
inline recdone(s) { rp[s]=0; if :: al[s] && !fl[s] && !pa[s] -> pw[s]=0 :: else -> skip fi; al[s]=0 }
inline unanswered(s) { if :: sB[s]==3 && eB[s]==rp[s] -> dropB(s) :: else -> skip fi; rr[s]=0; recdone(s) }
inline clrmm() { mm=0; mm_ep=0; mm_ver=0 }

proctype SM() {
end: do
  :: d_step { mm -> 
     if :: exB && exC==0 && MMOK && VEROK -> exB=0; exC=mm_c; epC=mm_c; lC=HEIRS; res=1;
           if :: DATA && !dFenced -> dSealed=mm_d; assert(dAck<=mm_d) :: else -> skip fi                               /* P4 */
        :: else -> res=2 fi; clrmm(); mm_d=0 }
  od }

proctype PS(byte s) {
end: do
  /* split: stop and send the last record; it lands or not; MultiModify */
  :: d_step { cmd>0 && cmd==eB[s] && sB[s]==1 && rp[s]==0 && IDLE(s) ->
     if :: DATA && DSTATE(s) && CERTAIN && du[s] -> if :: exB && epB==eB[s] -> dFenced=1 :: else -> skip fi :: else -> skip fi;
     sB[s]=3; rp[s]=eB[s]; rc[s]=cmdc; cmd=0; cmdc=0;
     if :: ALONG(s) -> al[s]=1; rr[s]=pw[s]; if :: !RECACK -> floor_=MX(floor_,pw[s]) :: else -> skip fi :: else -> rr[s]=vB[s] fi }
  :: d_step { RECLANDS(s) -> lB=MX(lB,rr[s]);                                /* it is durable, and PS hears of it */
     if :: al[s] -> floor_=MX(floor_,pw[s]) :: else -> skip fi;
     if :: sB[s]==3 && eB[s]==rp[s] -> sB[s]=4 :: else -> rr[s]=0 fi; recdone(s) }
  :: d_step { RECLANDS(s) -> lB=MX(lB,rr[s]); unanswered(s) }               /* it is durable; its answer is lost */
  :: d_step { rp[s]>0 -> unanswered(s) }                                    /* refused, or lost */
  :: d_step { sB[s]==3 -> dropB(s) }                                         /* no answer in time; it may land later, and be answered */
  :: d_step { RECORDED(s) && !mm && res==0 ->
     mm_d=dK[s]; sB[s]=2; mm=1; mm_s=s; mm_ep=eB[s]; mm_ver=verB; mm_v=rr[s]; mm_c=rc[s]; rc[s]=0; if :: rp[s]==0 -> rr[s]=0 :: else -> skip fi }
#ifdef PREP
  :: d_step { cmd>0 && cmd==eB[s] && sB[s]==1 && !mm && res==0 && nb==0 -> nb=cmdc; FORGET }   /* can't prepare: B is served as before */
#endif
  :: d_step { res==1 && mm_s==s -> res=0;
     if :: sB[s]==2 -> dropB(s); sC[s]=1; eC[s]=mm_c; vC[s]=mm_v; rep=mm_c :: else -> skip fi; mm_c=0; mm_v=0 }
  :: d_step { res==2 && mm_s==s -> res=0; mm_c=0;
     if :: sB[s]==2 -> BACK(s,mm_v) :: else -> skip fi; mm_v=0 }
  :: d_step { sB[s]==2 && mm && mm_s==s && verB<2 ->                     /* no answer in time: serve B again */
     BACK(s,mm_v) }
  :: d_step { res>0 && mm_s==s -> res=0; mm_c=0;                          /* answer lost */
     if :: sB[s]==2 -> BACK(s,mm_v) :: else -> skip fi; mm_v=0 }
  /* blob data: the nodes take it as long as the extent is not fenced; the answer may not come (then it may land at any later time) */
#if DATA
  :: d_step { DSTATE(s) && sB[s]==1 && !df[s] && !du[s] && dN<DATA -> dN++; df[s]=1 }
  :: d_step { df[s] && !dFenced -> dLen++; df[s]=0;
     if :: DSTATE(s) -> dK[s]=dLen; assert(dSealed==255 || dLen<=dSealed); dAck=dLen :: else -> skip fi }          /* P4 */
  :: d_step { df[s] && !dFenced -> dLen++; df[s]=0; du[s]=1 }                /* it landed; the answer is lost */
  :: d_step { df[s] -> df[s]=0; du[s]=1 }                                    /* it did not */
#endif
  /* lease */
  :: d_step { ok[s] && lends<LE -> lends++; ok[s]=0 }
  :: d_step { !ok[s] -> ok[s]=1; dropB(s); dropC(s) }                    /* new lease: everything dropped */
  /* writes: no clock */
  :: d_step { al[s] && !fl[s] && !pa[s] && sB[s]==3 -> fl[s]=1; fe[s]=eB[s] }  /* went along before it was sent to the log */
  :: d_step { pw[s]>0 && !fl[s] && !pa[s] && !al[s] ->
     if :: SRV(s) && VAL(s)<pw[s] -> fl[s]=1; fC[s]=sC[s]; fe[s]=(sC[s] -> eC[s] : eB[s]) :: else -> pw[s]=0 fi }
  :: d_step { fl[s] -> fl[s]=0;
     if :: !fC[s] && exB && epB==fe[s] -> lB=pw[s]; pa[s]=1
        :: fC[s] && exC>0 && epC==fe[s] -> lC=pw[s]; pa[s]=1
        :: else -> if :: !al[s] -> pw[s]=0 :: else -> skip fi; if :: fC[s] && eC[s]==fe[s] -> dropC(s) :: !fC[s] && eB[s]==fe[s] && sB[s]==1 -> dropB(s) :: else -> skip fi
     fi; fe[s]=0; if :: pa[s] -> if :: fC[s] && sC[s] -> vC[s]=MX(vC[s],pw[s]) :: !fC[s] && sB[s]>0 -> vB[s]=MX(vB[s],pw[s]) :: else -> skip fi :: else -> skip fi; fC[s]=0 }
  :: d_step { pa[s] -> floor_=MX(floor_,pw[s]); pa[s]=0; al[s]=0; pw[s]=0 }       /* acknowledged */
  od }

proctype Writer() {
end: do
  :: d_step { wv<W && pw[0]==0 -> wv++; pw[0]=wv }
  :: d_step { wv<W && pw[1]==0 -> wv++; pw[1]=wv }
  od }

proctype Reader() {
end: do
  :: d_step { rpc==0 && SRV(0) -> rpc=1; rs=0; rf=floor_ }
  :: d_step { rpc==0 && SRV(1) -> rpc=1; rs=1; rf=floor_ }
  :: d_step { rpc==1 -> if :: SRV(rs) && ok[rs] -> rv=VAL(rs); rpc=2 :: else -> rpc=0; rs=0; rf=0 fi }
  :: atomic { rpc==2 -> if :: ok[rs] && SRV(rs) -> assert(rv>=rf); floor_=MX(floor_,rv) :: else -> skip fi; /* P1 */
       rpc=0; rs=0; rv=0; rf=0 }
  od }

/* the owner of record says Closed, or its lease is over: nobody serves what the map names; then a new epoch and server */
inline close_owner() {
  if :: ok[mo] -> if :: m==2 -> dropC(mo); if :: CLOSEALL -> dropB(mo) :: else -> skip fi :: else -> dropB(mo) fi
     :: else -> skip fi }
proctype PM() { byte t;
end: do
  :: d_step { pc==0 && m==0 && minted<MAXEP && mc==0 -> minted++; cmd=me; cmdc=minted; rep=0; nb=0; pc=1;
       if :: NAMEF -> m=1; mc=minted :: else -> skip fi }
  :: d_step { pc==1 && rep>0 -> m=2; mc=rep; me=rep; rep=0; cmd=0; cmdc=0; pc=0 }
  :: d_step { pc==1 && nb>0 -> m=0; mc=0; nb=0; rep=0; pc=0 }
  :: d_step { pc==1 && m==1 && (!FENCE || minted<MAXEP) -> pc=2; cmd=0; cmdc=0; nb=0 }                            /* gave up waiting */
  :: d_step { crashes<PMC && pc>0 -> crashes++; cmd=0; cmdc=0; rep=0; nb=0; ans=0; fe_=0; pc=(m==1 -> 2 : 0) }           /* crash, new leader */
  /* resolve */
  :: d_step { pc==2 && FENCE && minted<MAXEP -> minted++; fe_=minted; if :: exB -> epB=fe_ :: else -> skip fi; pc=3 }
  :: d_step { pc==2 && !FENCE -> pc=3 }
  :: d_step { pc==3 -> ans=(ASK && exC==mc); pc=4 }
  :: d_step { pc==4 -> if :: ans -> m=2; me=mc :: else -> m=0; mc=0 fi; ans=0; fe_=0; rep=0; pc=0 }
  /* move of what the map names, to either server */
  :: atomic { pc==0 && m!=1 && minted<MAXEP -> d_step { close_owner(); minted++; me=minted };
       if :: ok[0] -> mo=0 :: ok[1] -> mo=1 fi;
       pc=6 }
  :: d_step { pc==6 -> pc=0;
       if
       :: m==0 && exB && epB<=me && ok[mo] -> epB=me; dFenced=1; sB[mo]=1; eB[mo]=me; vB[mo]=lB
       :: m==2 && exC>0 && epC<=me && ok[mo] -> epC=me; sC[mo]=1; eC[mo]=me; vC[mo]=lC
       :: else -> skip
       fi }
  od }
proctype P3() {
end: do
  :: atomic { pc==0 && m==0 && exC>0 -> assert(false) }            /* P3: map {B}, streams {C,D} */
  :: atomic { m==2 && (exB || exC==0) -> assert(false) }           /* P3: map {C,D}, streams {B} */
  od }
proctype P2() {
end: do :: atomic { ok[0] && ok[1] && SRV(0) && SRV(1) && VAL(0)!=VAL(1) -> assert(false) } od }
init { atomic { ok[0]=1; ok[1]=1; sB[0]=1; eB[0]=1; run SM(); run Writer(); run Reader(); run PM(); run P3(); run P2(); run PS(0); run PS(1) } }
