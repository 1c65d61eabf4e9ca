/**
 * Claims of a journal's pointer records about extent files, to be compared with the files when the journal is replayed.
 * A later record may have cut off the bytes that an earlier one points to, or put another file in their place.
 */
import type { ExtentId } from "@stamp/base";
import type { PointerBody } from "./journal-record.ts";
import type { ReplayEffect } from "./replay.ts";

export interface PointedBytes extends PointerBody {
  readonly offsetBytes: number;
}

export class PointedData {
  readonly #byExtent: Map<ExtentId, PointedBytes[]> = new Map();

  /** Takes every effect of the replay, in order. */
  note(id: ExtentId, effect: ReplayEffect): void {
    switch (effect.kind) {
      case "pointed": {
        const { offsetBytes, lengthBytes, checksum } = effect;
        const held = this.#byExtent.get(id);
        if (held === undefined) this.#byExtent.set(id, [{ offsetBytes, lengthBytes, checksum }]);
        else held.push({ offsetBytes, lengthBytes, checksum });
        return;
      }
      case "truncate": {
        const left = this.#byExtent.get(id)?.filter((each) => each.offsetBytes + each.lengthBytes <= effect.lengthBytes);
        if (left !== undefined) this.#byExtent.set(id, left);
        return;
      }
      case "create":
      case "remove":
      case "adoptCopy":
        this.#byExtent.delete(id);
        return;
      case "none":
      case "write":
    }
  }

  *all(): Iterable<readonly [ExtentId, PointedBytes]> {
    for (const [id, pointed] of this.#byExtent) for (const each of pointed) yield [id, each];
  }
}
