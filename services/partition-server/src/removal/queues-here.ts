/** Queues of an account whose rows a range has. Unless they are copied they are at one stamp only: whoever moves the account asks for them. */
import { compareBytes, type Outcome, ok, prefixEnd, present } from "@stamp/base";
import { decodeKey, queuesPrefix } from "@stamp/objects";
import type { ServingRange } from "../ranges/holdings.ts";
import { keysWithin } from "../shipping/range-work.ts";

const namesMax = 10;

/** Returns the names of the first queues, in order. */
export async function queuesHere({ range, engine }: ServingRange, account: string): Promise<Outcome<string[]>> {
  const own = keysWithin(range, account);
  const prefix = queuesPrefix(account, "");
  const end = present(prefixEnd(prefix), "the end of the queues' keys");
  const low = compareBytes(prefix, own.low) > 0 ? prefix : own.low;
  const high = compareBytes(end, own.high) < 0 ? end : own.high;
  if (compareBytes(low, high) >= 0) return ok([]);
  return engine.read(async (view) => {
    const rows = await view.scan(low, high, { rowsMax: namesMax, bytesMax: 1 << 20 });
    if (!rows.ok) return rows;
    return ok(
      rows.value.rows.flatMap(({ key }) => {
        const path = decodeKey(key);
        const [, [, name] = []] = path.ok ? path.value : [];
        return typeof name === "string" ? [name] : [];
      }),
    );
  });
}
