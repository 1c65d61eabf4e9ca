/**
 * How a command ends. Imports nothing, so that help and a wrong command line load nothing else.
 *
 * Invariant: a command ends after its reader has taken all of its output. Writes to a pipe are asynchronous, and `process.exit` drops what the
 * pipe has not taken yet: of a report in JSON a tool would get the first 64 KiB, with exit code 0. So nothing here calls `process.exit` behind an
 * output, except `endProcess`.
 */

/** Exit codes besides 0, which means that the command did what was asked for. */
export const exitCodes = {
  /** Exit code of a command that was refused or failed. */
  failed: 1,
  /** The command line or the configuration is wrong. */
  usage: 2,
  /** No cluster runs on this data folder. */
  notRunning: 3,
  /** The cluster runs, but not every process is ready. */
  notReady: 4,
  /** A drill found a broken promise; with --strict also: a drill missed its aim. */
  promiseBroken: 5,
  /** Exit code of `stamp health`: everything is served, and a person should act. */
  degraded: 6,
  /** Exit code of `stamp health`: something is not served, or data are in danger. */
  danger: 7,
  /** Exit code of `stamp up`: its processes are ready, but an extent node with a disk in the folder was not started. */
  leftOut: 9,
  /** Exit code of `stamp up`: the init file was right but could not be applied. The cluster is stopped again. */
  initFailed: 10,
  /** Drills kept every promise, but writes were held up for longer than the aim. */
  heldUp: 8,
  /** The command was left by Ctrl-C; it said what goes on without it. */
  left: 130,
} as const;

/** The exit codes for people. */
export const exitCodesText = `Exit codes: 0 done, 1 failed, 2 wrong command line or configuration, 3 not running, 4 not ready, 5 a drill found a broken promise;
of stamp health: 6 a person should act, 7 something is not served or data are in danger;
of stamp drill: 8 every promise was kept, but writes were held up for longer than the aim (an error, 5, with --strict);
of stamp up: 9 an extent node with a disk in the data folder was not started, 10 what --init FILE says could not be made; 130 left by Ctrl-C.`;

/** An end that needs words, not a stack. */
export class CommandError extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode: number = exitCodes.failed) {
    super(message);
    this.exitCode = exitCode;
  }
}

/**
 * Ends the process when standard output and standard error are written, also while sockets or handlers would keep it. `code`: exit code;
 * undefined: `process.exitCode`. If the reader has gone, ends at once; if it takes nothing, after a minute.
 */
export async function endProcess(code?: number): Promise<never> {
  const patience = new Promise<void>((resolve) => setTimeout(resolve, readerWaitMs));
  await Promise.race([Promise.all([written(process.stdout), written(process.stderr)]), patience]);
  // `process.exit(undefined)` ends with 0.
  process.exit(code ?? process.exitCode);
}

/** A log that is full and read by nobody must not keep a cluster's process for ever. */
const readerWaitMs = 60_000;

/** Resolves when everything that was given to `stream` is written, or can't be. */
const written = (stream: NodeJS.WriteStream): Promise<void> =>
  new Promise((resolve) => {
    stream.once("error", () => resolve());
    if (stream.destroyed) resolve();
    else stream.write("", () => resolve());
  });
