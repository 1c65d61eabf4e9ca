/** How a command ends. Imports nothing, so that help and a wrong command line load nothing else. */

/** Exit codes besides 0, which means that the command did what was asked for. */
export const exitCodes = {
  /** The command could not do it. */
  failed: 1,
  /** The command line or the configuration is wrong. */
  usage: 2,
  /** No cluster runs on this data folder. */
  notRunning: 3,
  /** The cluster runs, but not every process is ready. */
  notReady: 4,
  /** A drill found a broken promise; with --strict also: a drill missed its aim. */
  promiseBroken: 5,
  /** `stamp health`: everything is served, and a person should act. */
  degraded: 6,
  /** `stamp health`: something is not served, or data are in danger. */
  danger: 7,
  /** `stamp up`: what it started is ready, but an extent node with a disk in the folder was not started. */
  leftOut: 9,
  /** Drills kept every promise, but writes were held up for longer than the aim. */
  heldUp: 8,
  /** The command was left by Ctrl-C; it said what goes on without it. */
  left: 130,
} as const;

/** An end that needs words, not a stack. */
export class CommandError extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode: number = exitCodes.failed) {
    super(message);
    this.exitCode = exitCode;
  }
}
