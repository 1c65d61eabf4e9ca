/* handles.pml - handles of one file, beside REST requests (files.md "Handles").
 * The rows of a file are one PartitionName, so one step decides over handles, delete-pending, node and content. The entry (the file's
 * name) is another one. Two gateways, each with one session; a REST writer; a REST deletion; somebody who meets what others left.
 * A gateway that crashes or sleeps is not scheduled any more, or late: an Open that it has sent may arrive after its session ended.
 * Rules (off with -DNO_<rule>):
 *   CHECK     handles are looked at in the step that writes             (off: looked at before, then written)
 *   MARK      a deletion marks the node under a look at the handles     (off: looks, then takes the name)
 *   RECORDED  a handle counts until the end of its session is recorded  (off: until somebody finds the session late)
 *   LAST      the last handle that is closed removes the file           (off: whoever closes after a mark for deletion)
 *   FINAL     nobody opens or keeps a file that waits for its removal   (off: it can be opened until its name is gone)
 * S1 REST writes nothing beside a handle that shares nothing, S2 no two handles exclude each other, S3 REST deletes nothing
 * beside such a handle, S4 who holds its session holds its handle, S5 a file that is removed has no handle and is marked so
 */
#define NONE 1                 /* share mode: nothing */
#define ALL 2                  /* share mode: read, write, delete */
byte h[2];                     /* handle of gateway g: 0 none, or its share mode */
bit dc[2];                     /* delete on close */
bit ended[2];                  /* the lock service has recorded the end of the session */
bit bel[2];                    /* the gateway believes that it holds the session (ends before: margin) */
bit pend; bit mark; bit removed; bit named=1;
bit busy;                      /* somebody removes what waits for its removal */
#define open1 (h[0]==NONE || h[1]==NONE)
#define none (h[0]==0 && h[1]==0)
#define blocked (removed || mark)

inline finish() {              /* two steps: the name, then the node */
  if :: atomic { !blocked && named && pend -> named=0; assert(none) /* S5 */ } ; atomic { removed=1 }
     :: else fi }
inline drop(g, doomed) { h[g]=0; if :: dc[g] -> pend=1 :: else fi; dc[g]=0; 
#ifdef NO_LAST
  doomed=pend
#else
  doomed=(pend && none)
#endif
}
#ifdef NO_FINAL
#define mayopen (!pend || none)
#else
#define mayopen (!pend)
#endif
proctype Gateway(byte g) { byte m; bit have; bit doomed; bit sent; byte n;
  bel[g]=1;
end: do
  :: atomic { bel[g] && !have && !sent && n<2 -> n++; sent=1; if :: m=NONE :: m=ALL fi }
  :: sent ->
#ifdef NO_CHECK
     if :: atomic { !blocked && mayopen && (none || (m==ALL && !open1)) -> skip } ;
           atomic { h[g]=m; if :: dc[g]=1 :: dc[g]=0 fi; assert(!(open1 && h[1-g]>0)); /* S2 */ have=bel[g] }
        :: else fi; sent=0
#else
     atomic { if :: !blocked && mayopen && (none || (m==ALL && !open1)) -> h[g]=m; if :: dc[g]=1 :: dc[g]=0 fi;
                    assert(!(open1 && h[1-g]>0)); /* S2 */ have=bel[g];
#ifdef NO_FINAL
                    pend=0
#endif
                 :: else fi; sent=0 }
#endif
  :: atomic { have && bel[g] -> assert(h[g]>0) } /* S4: it reads or writes */
  :: atomic { have && bel[g] && h[g]>0 -> if :: pend=1 :: pend=0 fi }
  :: have && bel[g] -> atomic { have=0; drop(g, doomed) } ; if :: doomed -> finish() :: else fi
  :: atomic { bel[g] -> bel[g]=0; have=0 }
  od }
proctype Lock(byte g) {
end: if
#ifdef NO_RECORDED
  :: ended[g]=1
#else
  :: atomic { bel[g]==0 -> ended[g]=1 }
#endif
  fi }
proctype Meets() { byte g; bit doomed;
end: do
  :: atomic { ended[0] && h[0]>0 -> drop(0, doomed) } ; if :: doomed -> finish() :: else fi
  :: atomic { ended[1] && h[1]>0 -> drop(1, doomed) } ; if :: doomed -> finish() :: else fi
  :: pend && none && !blocked && named -> finish()
  :: atomic { pend && none && !named && !removed -> removed=1 }
  od }
proctype Writer() {
end: do
#ifdef NO_CHECK
  :: atomic { !blocked && !pend && !open1 -> skip } ; atomic { assert(!open1) /* S1 */ }
#else
  :: atomic { !blocked && !pend && !open1 -> assert(!open1) }
#endif
  od }
proctype Deleter() {
end: if
  :: atomic { !blocked && !pend && !open1 && named ->
#ifndef NO_MARK
     mark=1
#endif
     }
     if :: atomic { named -> named=0; assert(!open1) /* S3 */ } ; atomic { removed=1; mark=0 }
        :: mark=0 fi               /* it was given up */
  fi }
init { atomic { bel[0]=1; bel[1]=1; run Gateway(0); run Gateway(1); run Lock(0); run Lock(1); run Meets(); run Writer(); run Deleter() } }
