/** Per lock key: whether the last transaction that was decided there, and is not settled yet, becomes durable. */
export class Pipelines {
  readonly #last = new Map<string, Promise<boolean>>();

  /** Resolves to true when the earlier decisions under this key are durable; undefined if they are already. */
  last(lockKey: Uint8Array): Promise<boolean> | undefined {
    return this.#last.get(nameOfKey(lockKey));
  }

  /** For the next one under this key. Call what it returns once, when it is known. */
  enter(lockKey: Uint8Array): (durable: boolean) => void {
    const name = nameOfKey(lockKey);
    const { promise, resolve } = Promise.withResolvers<boolean>();
    this.#last.set(name, promise);
    return (durable) => {
      if (this.#last.get(name) === promise) this.#last.delete(name);
      resolve(durable);
    };
  }
}

/** One UTF-16 unit a byte: short, and equal exactly when the bytes are. */
export function nameOfKey(key: Uint8Array): string {
  let name = "";
  for (const byte of key) name += String.fromCharCode(byte);
  return name;
}
