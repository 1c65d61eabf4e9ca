/**
 * Mints owner epochs: one counter for the whole stamp in the metadata store, raised by a transaction that is fenced with the manager's
 * term. An epoch is never given twice, also when the outcome of a transaction is unknown: then it is skipped.
 */
import { type Failure, fromUtf8, type Outcome, ok, refused, utf8 } from "@stamp/base";
import type { MetadataClient } from "@stamp/metadata-store";

export const ownerEpochKey = "partition-manager/owner-epoch";
const timeoutMs = 2_000;
/** Farthest that one transaction goes above the last epoch: the stream manager records none that is farther ahead. */
export const aheadMax = 256;

/** True if a failure ends the term: somebody else leads, or the metadata store is another stamp's. */
export const endsTerm = ({ reason }: Failure): boolean => reason === "staleTerm" || reason === "wrongStamp";

interface Wanted {
  readonly count: number;
  readonly answer: (minted: Outcome<number>) => void;
}

/** One transaction at a time: those who come meanwhile share the next one, and none overtakes another. */
export class OwnerEpochs {
  readonly #store: Pick<MetadataClient, "get" | "transact">;
  readonly #pmTerm: number;
  /** The highest epoch that a stream was said to have. */
  #told = 0;
  #wanted: Wanted[] = [];
  #minting = false;

  constructor(store: Pick<MetadataClient, "get" | "transact">, pmTerm: number) {
    this.#store = store;
    this.#pmTerm = pmTerm;
  }

  /** Notes an epoch because of which a stream refused: the next ones are above it, at most `aheadMax` at once. */
  told(epoch: number): void {
    if (Number.isSafeInteger(epoch)) this.#told = Math.max(this.#told, epoch);
  }

  /** Returns the first of `count` neighbouring new epochs. */
  mint(count: number): Promise<Outcome<number>> {
    const minted = new Promise<Outcome<number>>((answer) => {
      this.#wanted.push({ count, answer });
    });
    void this.#mintAll();
    return minted;
  }

  async #mintAll(): Promise<void> {
    if (this.#minting) return;
    this.#minting = true;
    while (this.#wanted.length > 0) {
      const wanted = this.#wanted;
      this.#wanted = [];
      const minted = await this.#mint(wanted.reduce((sum, { count }) => sum + count, 0));
      let next = minted.ok ? minted.value : 0;
      for (const { count, answer } of wanted) {
        answer(minted.ok ? ok(next) : minted);
        next += count;
      }
    }
    this.#minting = false;
  }

  async #mint(count: number): Promise<Outcome<number>> {
    const held = await this.#store.get([ownerEpochKey], timeoutMs);
    if (!held.ok) return held;
    const entry = held.value[0];
    if (!entry) return refused("internal", "bug", "the metadata store answered without an entry");
    const last = entry.version === 0 ? 0 : Number(fromUtf8(entry.value));
    if (!Number.isSafeInteger(last) || last < 0) return refused("dataLoss", "damaged", `${ownerEpochKey} is not a number`);
    const above = Math.max(last, Math.min(this.#told, last + aheadMax));
    const raised = await this.#store.transact(
      {
        fence: { leaseName: "partition-manager", leaseEpoch: this.#pmTerm },
        conditions: [{ key: ownerEpochKey, version: entry.version }],
        writes: [{ key: ownerEpochKey, value: utf8(String(above + count)) }],
      },
      timeoutMs,
    );
    return raised.ok ? ok(above + 1) : raised;
  }
}
