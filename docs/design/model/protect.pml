/* protect.pml - a hold (or policy) is placed while its container is deleted (partition-layer.md "Objects that span partitions").
 * Container row in partition A, one blob in partition B. A and B are each linearizable (move.pml is about that), so one access to either is
 * one step; between the steps any time passes. A front-end may die after any step (the holder does; a deleter that dies is one that waits).
 * Two holders, two deleters, one who lifts holds, one who restores the container (kept after its deletion, same incarnation).
 *   hold:   mark the row | set the hold on the blob | confirm at the row: it is there, and no deletion that began stands any more | answer
 *   delete: read the row; if marked: begin (token in the row), look at every blob | delete, if the token stands and the marks are the same
 * Rules (off with -DNO_<rule>):
 *   MARK     the row is marked before the hold is set                        (off: only confirmed)
 *   CONFIRM  the hold is confirmed at the row before it is answered          (off: answered when set)
 *   BEGUN    Delete Container asks, in the row's order, whether its beginning stands and nothing was marked meanwhile
 * P6a  no hold that was acknowledged and not lifted since stands in a container when it is deleted
 * P6b  nor a hold, acknowledged or not, that stood when Delete Container arrived
 * P6c  no hold is acknowledged in a container that is gone
 */
#ifndef RESTORES
#define RESTORES 1
#endif
#ifndef TOKENS
#define TOKENS 3
#endif
#ifndef HOLDS
#define HOLDS 3                    /* that come anew */
#endif
bit there = 1; bit marked; byte token; byte tokens;   /* the container's row */
bit held; byte hgen;                                  /* the blob; hgen: how often a hold came anew (ghost) */
bit acked;                                            /* the hold that stands was acknowledged (ghost) */
byte restored;

proctype Holder() { byte g;
end: do
  :: d_step { there -> g=0 };                                     /* arrives, reads the row */
#ifndef NO_MARK
     if :: d_step { there -> marked=1 } :: !there -> goto end fi;
#endif
     d_step { if :: held -> skip :: !held && hgen<HOLDS -> held=1; hgen++ :: else fi; g=hgen };
     if
     :: goto end                                                  /* dies, or its answer is lost */
     :: skip
     fi;
#ifndef NO_CONFIRM
     if :: d_step { there -> marked=1; token=0 } :: !there -> goto end fi;
     d_step { if :: held && g==hgen -> acked=1 :: else fi; g=0 }
#else
     d_step { if :: held && g==hgen -> acked=1 :: else fi; g=0 }
#endif
  od }

proctype Lifter() {
end: do :: d_step { held -> held=0; acked=0 } od }

proctype Owner() {
end: do :: d_step { !there && restored<RESTORES -> there=1; restored++ } od }

proctype Deleter() { byte tok; byte a; bit m;
end: do
  :: d_step { there -> m=marked; tok=0; if :: held -> a=hgen :: else -> a=0 fi };
     if
     :: !m -> skip
     :: m -> if
             :: d_step { there && (token>0 || tokens<TOKENS) -> if :: token==0 -> tokens++; token=tokens :: else fi; tok=token }
             :: !there -> m=0; a=0; goto end
             fi;
             if :: held -> m=0; a=0; tok=0; goto end :: !held -> skip fi          /* sees every blob: refuses */
     fi;
     atomic { if
     :: there &&
#ifdef NO_BEGUN
        true
#else
        ((tok==0 && !marked) || (tok>0 && token==tok))
#endif
        -> assert(!acked);                                                         /* P6a */
           assert(!(a>0 && held && hgen==a));                                      /* P6b */
           there=0
     :: else -> skip                                                               /* again, or it is gone */
     fi; m=0; a=0; tok=0 }
  od }

proctype Judge() { atomic { acked && !there -> assert(false) } }                   /* P6c */

init { atomic { run Holder(); run Holder(); run Lifter(); run Owner(); run Deleter(); run Deleter(); run Judge() } }
