// The part of WebAssembly's interface that this repository uses. A module without imports is a pure function of its memory.
declare namespace WebAssembly {
  class Module {
    constructor(bytes: Uint8Array<ArrayBuffer>);
  }
  class Instance {
    constructor(module: Module, imports: Record<string, never>);
    readonly exports: Readonly<Record<string, unknown>>;
  }
  class Memory {
    /** Sizes in pages of 64 KiB. */
    constructor(descriptor: { readonly initial: number; readonly maximum?: number });
    readonly buffer: ArrayBuffer;
    /** Adds pages of 64 KiB. Views of the buffer before it are detached. */
    grow(pages: number): number;
  }
}
