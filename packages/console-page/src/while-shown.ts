/** Signal of the view that is open: nobody waits for its lists any more when another one is opened. */
import { route } from "./store.ts";

let left = new AbortController();
let view: string | undefined;
route.subscribe(([name]) => {
  if (name === view) return;
  view = name;
  left.abort();
  left = new AbortController();
});

/** Returns a signal that is aborted when another view is opened, or after `timeoutMs`. */
export const whileShown = (timeoutMs: number): AbortSignal => AbortSignal.any([left.signal, AbortSignal.timeout(timeoutMs)]);
