/**
 * Progress of a command that may take long: a line on standard error now and then, never on standard output, which is for the answer. Whoever
 * presses Ctrl-C is told what goes on without the command.
 *
 * Invariants:
 * - A command that ends soon prints nothing.
 * - The terminal is never silent for longer than `saidEveryMs` while the work goes on.
 */
import { endProcess, exitCodes } from "./exit.ts";
import { warn } from "./say.ts";

/** The first line comes after this time, in milliseconds. */
const firstMs = 2_000;
/** A line is repeated after this time, with the time that has passed, also if nothing has changed. */
const saidEveryMs = 10_000;
/** Shortest time between two changes of a line, in milliseconds. */
const changedEveryMs = 2_000;

export interface ProgressDoor {
  readonly nowMs: () => number;
  /** Prints one line. */
  readonly say: (line: string) => void;
  /** Calls `work` again and again; returns what ends that. */
  readonly every: (ms: number, work: () => void) => () => void;
  /** Calls `work` on Ctrl-C; returns what ends that. */
  readonly onInterrupt: (work: () => void) => () => void;
  readonly exit: (code: number) => void;
}

const terminal: ProgressDoor = {
  nowMs: () => performance.now(),
  say: (line) => warn(line),
  every: (ms, work) => {
    const timer = setInterval(work, ms);
    return () => clearInterval(timer);
  },
  onInterrupt: (work) => {
    process.once("SIGINT", work);
    return () => void process.off("SIGINT", work);
  },
  exit: (code) => void endProcess(code),
};

/** Tells how far the work is. */
export type TellProgress = (how: string) => void;

/**
 * Does `work`, which tells how far it is as often as it likes. `what`: the work, until it tells more. `afterwards`: what goes on when the command
 * is left, as a sentence for a person. `leave`: takes away what the command would leave half done.
 */
export async function withProgress<T>(
  { what, afterwards, leave }: { readonly what: string; readonly afterwards: string; readonly leave?: () => void },
  work: (tell: TellProgress) => Promise<T>,
  door: ProgressDoor = terminal,
): Promise<T> {
  const startMs = door.nowMs();
  let now = what;
  let said = "";
  let saidMs = startMs;
  const say = (): void => {
    const nowMs = door.nowMs();
    const dueMs = said === "" ? firstMs : said === now ? saidEveryMs : changedEveryMs;
    if (nowMs - saidMs < dueMs) return;
    door.say(`${Math.round((nowMs - startMs) / 1_000)} s: ${now}${said === "" ? " (Ctrl-C leaves this)" : ""}`);
    said = now;
    saidMs = nowMs;
  };
  const stopSaying = door.every(firstMs / 4, say);
  let left = false;
  const stopListening = door.onInterrupt(() => {
    left = true;
    leave?.();
    door.say(`\nleft. ${afterwards}`);
    door.exit(exitCodes.left);
  });
  try {
    const done = await work((how) => {
      now = how;
    });
    if (!left) return done;
  } catch (error) {
    if (!left) throw error;
  } finally {
    stopSaying();
    stopListening();
  }
  // The command was left, and ends as soon as its words are written: it tells no result of work that ended just now.
  return new Promise<never>(() => {});
}
