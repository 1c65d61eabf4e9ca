/**
 * Steps with a complete drain of all microtasks between them, without paying for a turn of the event loop: each step runs in a
 * `process.nextTick` callback, and behind whatever microtasks it made one more is queued, which asks for the next tick. Node takes the
 * next tick only when its microtask queue is empty, so everything that a step set off is over, or waits for a later step. Every
 * `turnEvery` steps one real turn is taken, so that unhandled rejections surface and the process answers to signals.
 *
 * This file is where the simulation touches the machine it runs on.
 */
const turnEvery = 512;

/** Calls `step` until it returns true. `step` must not throw. */
export async function drainLoop(step: () => boolean, onUnhandledRejection: (error: unknown) => void): Promise<void> {
  // biome-ignore-start lint/style/noRestrictedGlobals: the kernel drives the event loop.
  const drained = Promise.resolve();
  let steps = 0;
  process.on("unhandledRejection", onUnhandledRejection);
  await new Promise<void>((resolve) => {
    const next = (): void => {
      if (!step()) {
        // One real turn more, for the rejections of the last step.
        setImmediate(resolve);
        return;
      }
      steps += 1;
      if (steps % turnEvery === 0) setImmediate(next);
      else void drained.then(again);
    };
    const again = (): void => process.nextTick(next);
    setImmediate(next);
  });
  process.off("unhandledRejection", onUnhandledRejection);
  // biome-ignore-end lint/style/noRestrictedGlobals: the kernel drives the event loop.
}
