/** Logs long steps of the start, every 2 seconds. */
import type { World } from "@stamp/ports";

const tellEveryMs = 2_000;

export function progress({ clock }: World): (tell: () => void) => void {
  let toldMs = clock.monotonicMs();
  return (tell) => {
    if (clock.monotonicMs() - toldMs < tellEveryMs) return;
    toldMs = clock.monotonicMs();
    tell();
  };
}
