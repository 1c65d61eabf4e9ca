/** Items of a stream until its caller gives up. */
/** Ends at once when the signal is aborted, even while the next item is still being made; its maker is returned. */
export async function* untilAborted<T>(items: AsyncIterable<T>, signal: AbortSignal): AsyncIterable<T> {
  const iterator = items[Symbol.asyncIterator]();
  let stop: () => void = () => {};
  const aborted = new Promise<"aborted">((resolve) => {
    stop = () => resolve("aborted");
  });
  signal.addEventListener("abort", stop, { once: true });
  let ended = false;
  try {
    while (!signal.aborted) {
      const step = iterator.next();
      const next = await Promise.race([step, aborted]);
      if (next === "aborted") {
        step.catch(() => {});
        return;
      }
      if (next.done) {
        ended = true;
        return;
      }
      yield next.value;
    }
  } catch (error) {
    ended = true;
    throw error;
  } finally {
    signal.removeEventListener("abort", stop);
    // Not awaited: a maker that hangs must not hold the call.
    if (!ended) iterator.return?.()?.catch(() => {});
  }
}
