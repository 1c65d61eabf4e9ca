/** Accesses to memory between two turns of the event loop: a turn for each would take most of the time of a start. */
const atOnceMax = 32;
const atOnce = Promise.resolve();

let accesses = 0;
let waiting: Promise<void> | undefined;

/** Resolves at once, or, after a number of accesses, in the next turn of the event loop, so that others get theirs. */
export function nextTurn(): Promise<void> {
  accesses += 1;
  if (accesses <= atOnceMax) return atOnce;
  waiting ??= new Promise((resolve) => {
    setImmediate(() => {
      accesses = 0;
      waiting = undefined;
      resolve();
    });
  });
  return waiting;
}
