/**
 * Keeps the garbage collection and the adoption of fragments apart: which deletions of fragments were sent and not answered with success, and
 * whose fragments are being read to be taken back.
 *
 * Invariant: a record never names a fragment whose deletion may still arrive. No deletion is sent while an extent's fragments are being taken
 * back, and a fragment whose deletion was sent before is not taken.
 */
import type { ExtentId } from "@stamp/base";
import type { FragmentPlace } from "@stamp/stream";

const keyOf = ({ nodeId, diskId, version }: FragmentPlace): string => `${nodeId} ${diskId} ${version}`;

export class SentDeletions {
  readonly #sent = new Map<ExtentId, Set<string>>();
  readonly #kept = new Set<ExtentId>();

  /** Keeps all fragments of the extent from now on; false: somebody else keeps them already. */
  keep(id: ExtentId): boolean {
    if (this.#kept.has(id)) return false;
    this.#kept.add(id);
    return true;
  }

  release(id: ExtentId): void {
    this.#kept.delete(id);
  }

  isKept(id: ExtentId): boolean {
    return this.#kept.has(id);
  }

  /** Notes that a deletion is about to be sent. */
  send(id: ExtentId, place: FragmentPlace): void {
    const sent = this.#sent.get(id) ?? new Set();
    this.#sent.set(id, sent.add(keyOf(place)));
  }

  /** Notes that the fragment is deleted, or that its disk is gone for ever. */
  done(id: ExtentId, place: FragmentPlace): void {
    const sent = this.#sent.get(id);
    sent?.delete(keyOf(place));
    if (sent?.size === 0) this.#sent.delete(id);
  }

  /** True if a deletion of the fragment was sent and may still arrive. */
  mayArrive(id: ExtentId, place: FragmentPlace): boolean {
    return this.#sent.get(id)?.has(keyOf(place)) ?? false;
  }
}
