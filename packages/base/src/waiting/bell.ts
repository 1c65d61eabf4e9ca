/** A moment that several wait for: `notify` wakes everybody who waits now, in the order in which they began to wait. */
export class WakeUp {
  #next: Promise<void> | undefined;
  #ring: (() => void) | undefined;

  /** Resolves at the next `notify`. */
  get next(): Promise<void> {
    this.#next ??= new Promise((resolve) => {
      this.#ring = resolve;
    });
    return this.#next;
  }

  notify(): void {
    const ring = this.#ring;
    this.#next = undefined;
    this.#ring = undefined;
    ring?.();
  }
}
