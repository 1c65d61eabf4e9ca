/**
 * One direction of one connection: items come out in the order in which they went in, each after its delay, or not at all. Each
 * delivery takes the head of the line, so that the order holds whatever was put off in between.
 */
import type { Incarnation } from "../kernel/process.ts";
import type { Network } from "./network.ts";

interface Item {
  readonly label: string;
  readonly deliver: () => void;
}

export class Pipe {
  readonly from: Incarnation;
  readonly to: Incarnation;
  readonly #network: Network;
  readonly #onStall: () => void;
  #line: Item[] = [];
  #lastAtUs = 0;
  /** Number of deliveries that wait because the way is cut. */
  #waiting = 0;
  /** True if nothing ever comes out any more. */
  #silent = false;
  #heldUntilUs = 0;

  /** `onStall` is called when nothing comes through from now on; keep-alive is the connection's. */
  constructor(network: Network, from: Incarnation, to: Incarnation, onStall: () => void) {
    this.#network = network;
    this.from = from;
    this.to = to;
    this.#onStall = onStall;
  }

  get stuck(): boolean {
    return this.#silent || this.#waiting > 0;
  }

  send(label: string, deliver: () => void): void {
    const { options, prng } = this.#network;
    if (!this.#silent && options.silenceChance > 0 && prng.chance(options.silenceChance)) this.silence();
    if (this.#silent) return;
    const now = this.from.nowUs;
    this.#lastAtUs = Math.max(this.#lastAtUs, now + this.#network.linkDelayUs(this.from.name, this.to.name));
    this.#line.push({ label, deliver });
    this.#schedule(this.#lastAtUs - now, label);
  }

  /** Stalls the pipe: everything arrives later by this time, in order. */
  hold(delayUs: number): void {
    this.#heldUntilUs = Math.max(this.#heldUntilUs, this.to.nowUs + delayUs);
    this.#lastAtUs = Math.max(this.#lastAtUs, this.#heldUntilUs);
  }

  /** Cuts a delivery short: a first part still arrives, because the sender gave up. */
  cutShort(): void {
    if (this.#line.length > 0) this.#line.length = this.#network.prng.below(this.#line.length + 1);
  }

  /** Ends the pipe, because the receiver gave up. */
  drop(): void {
    this.#line = [];
    this.#network.forget(this);
  }

  silence(): void {
    if (this.#silent) return;
    this.#silent = true;
    this.#line = [];
    this.#onStall();
  }

  goOn(): void {
    const waiting = this.#waiting;
    this.#waiting = 0;
    // Retransmission takes its time, the same for all that waited.
    const delayUs = this.#network.delayUs() + this.#network.prng.below(200_000);
    for (let i = 0; i < waiting; i++) this.#schedule(delayUs, "late");
    this.#lastAtUs = Math.max(this.#lastAtUs, this.to.nowUs + delayUs);
  }

  #schedule(delayUs: number, label: string): void {
    this.to.schedule(delayUs, "deliver", label, () => {
      if (this.#line.length === 0) return;
      if (this.to.nowUs < this.#heldUntilUs) {
        this.#schedule(this.#heldUntilUs - this.to.nowUs, "held");
        return;
      }
      if (this.#waiting > 0 || this.#network.isCut(this.from.name, this.to.name)) {
        this.#waiting += 1;
        this.#network.stalled(this);
        if (this.#waiting === 1) this.#onStall();
        return;
      }
      (this.#line.shift() as Item).deliver();
    });
  }
}
