/** Something several wait for: `notify` wakes all who wait now. */
export class Bell {
  #ring: () => void = () => {};
  #rung: Promise<void> = new Promise((resolve) => {
    this.#ring = resolve;
  });

  get next(): Promise<void> {
    return this.#rung;
  }

  notify(): void {
    this.#ring();
    this.#rung = new Promise((resolve) => {
      this.#ring = resolve;
    });
  }
}
