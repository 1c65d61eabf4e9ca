/** Bounds the memory of all copies of bytes that one process has under way. */
export class ByteGate {
  #freeBytes: number;
  readonly #waiting: { readonly bytes: number; readonly go: () => void }[] = [];

  constructor(bytesMax: number) {
    this.#freeBytes = bytesMax;
  }

  /** Resolves when there is room, in the order of the calls. `bytes` is at most the bound. */
  async take(bytes: number): Promise<void> {
    if (this.#waiting.length > 0 || this.#freeBytes < bytes) {
      await new Promise<void>((resolve) => this.#waiting.push({ bytes, go: resolve }));
    } else this.#freeBytes -= bytes;
  }

  give(bytes: number): void {
    this.#freeBytes += bytes;
    for (let next = this.#waiting[0]; next !== undefined && next.bytes <= this.#freeBytes; next = this.#waiting[0]) {
      this.#waiting.shift();
      this.#freeBytes -= next.bytes;
      next.go();
    }
  }
}
