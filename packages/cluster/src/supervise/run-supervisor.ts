/** A supervisor with its control socket and the signals that stop it. */
import { makeBundleWhenReady } from "../bundle/later-bundle.ts";
import { type ControlledSupervisor, ControlServer } from "./control.ts";
import { finalizeByItself } from "./own-finalize.ts";
import { Supervisor, type SupervisorOptions } from "./supervisor.ts";

export interface Running {
  /** Resolves when everything has been stopped, by whoever asked. */
  readonly stopped: Promise<void>;
  stop(): Promise<void>;
}

export interface RunningSupervisor extends Running {
  readonly supervisor: Supervisor;
}

const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** Time within which a repeated signal is the same one, sent to the group and passed on by a parent, in milliseconds. */
const sameSignalMs = 1_000;

export async function runSupervisor(
  options: SupervisorOptions & { readonly onStopping?: (why: string) => void },
): Promise<RunningSupervisor> {
  const ending = new AbortController();
  let leave = (): void => {};
  const supervisor = new Supervisor({
    ...options,
    onReplaced: (by) => {
      process.stderr.write(
        `stamp: supervisor ${by.pid} has taken ${options.config.dataDir}: this one has ended its processes and leaves\n`,
      );
      ending.abort();
      leave();
    },
  });
  const running = await superviseUntilStopped(supervisor, (why) => {
    options.onStopping?.(why);
    ending.abort();
  });
  leave = running.leave;
  void makeBundleWhenReady(
    options.root,
    () => supervisor.ready,
    ending.signal,
    (why) => process.stderr.write(`stamp: ${why}\n`),
  );
  if (options.config.topology === undefined) void finalizeByItself(options.transport, () => supervisor.status(), ending.signal);
  return { supervisor, stopped: running.stopped, stop: running.stop };
}

/**
 * Starts a supervisor, and gives it a control socket and the signals that stop it. `leave` resolves `stopped` although the supervisor was not
 * stopped: its folder is another one's.
 */
export async function superviseUntilStopped(
  supervisor: ControlledSupervisor & { start(): Promise<void>; stop(): Promise<void> },
  onStopping: (why: string) => void,
): Promise<Running & { readonly leave: () => void }> {
  goesOnWithoutReader();
  // Its socket, logs and records are for its user alone; the processes that it starts inherit this.
  process.umask(0o077);
  const { promise: stopped, resolve } = Promise.withResolvers<void>();
  let stopping: Promise<void> | undefined;
  const stop = (why: string): Promise<void> => {
    if (stopping === undefined) {
      onStopping(why);
      stopping = supervisor.stop();
      // The answer to whoever asked still goes out: the server ends when its connections have.
      void stopping.then(() => server.close()).then(resolve);
    }
    return stopping;
  };
  const server = new ControlServer(supervisor, () => stop("asked to"));
  let started = false;
  let askedBy: NodeJS.Signals | undefined;
  let firstSignalMs = 0;
  const onSignal = (signal: NodeJS.Signals): void => {
    askedBy ??= signal;
    if (!started) return;
    if (firstSignalMs === 0) firstSignalMs = performance.now();
    else if (performance.now() - firstSignalMs > sameSignalMs) void supervisor.powerLoss();
    void stop(signal);
  };
  const unhear = (): void => {
    for (const signal of signals) process.off(signal, onSignal);
  };
  // Before the first process begins: a supervisor that a signal ends in between would leave the others without anyone who ends them.
  for (const signal of signals) process.on(signal, onSignal);
  // A process may run one cluster after another, as drills do.
  void stopped.then(unhear);
  try {
    await supervisor.start();
    await server.listen();
  } catch (error) {
    unhear();
    throw error;
  }
  started = true;
  if (askedBy !== undefined) onSignal(askedBy);
  const leave = (): void => {
    server.leave();
    resolve();
  };
  return { stopped, stop: () => stop("asked to"), leave };
}

/** Keeps the supervisor running when its terminal is closed, its pipe has no reader, or the log's disk is full. */
function goesOnWithoutReader(): void {
  for (const output of [process.stdout, process.stderr]) if (!output.listeners("error").includes(ignored)) output.on("error", ignored);
}

const ignored = (): void => {};
