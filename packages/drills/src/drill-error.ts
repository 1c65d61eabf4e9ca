/** Thrown where a drill can't go on, with words for a person: no stack belongs to it. */
export class DrillError extends Error {
  /** True if nothing runs that the drill could attach to. */
  readonly isNotRunning: boolean;

  constructor(message: string, { isNotRunning = false }: { readonly isNotRunning?: boolean } = {}) {
    super(message);
    this.isNotRunning = isNotRunning;
  }
}
