/**
 * Heads of requests that have not come to their end are held in memory before anybody has shown who it is. Their bytes are bounded together;
 * beyond the bound the address that holds most gives up its largest ones.
 */
export interface HeldHead<C> {
  readonly connection: C;
  readonly address: string;
  /** Number of bytes that came since the connection's last request, or since its beginning. */
  readonly bytes: number;
}

/** Returns the connections that have to end so that the others hold at most `bytesMax` together. */
export function headsToEnd<C>(heads: readonly HeldHead<C>[], bytesMax: number): C[] {
  let total = 0;
  const byAddress = new Map<string, number>();
  for (const { address, bytes } of heads) {
    total += bytes;
    byAddress.set(address, (byAddress.get(address) ?? 0) + bytes);
  }
  if (total <= bytesMax) return [];
  const held = (head: HeldHead<C>): number => byAddress.get(head.address) ?? 0;
  const order = [...heads].sort(
    (a, b) => held(b) - held(a) || (a.address < b.address ? -1 : Number(a.address > b.address)) || b.bytes - a.bytes,
  );
  const ended: C[] = [];
  for (const { connection, bytes } of order) {
    if (total <= bytesMax) break;
    ended.push(connection);
    total -= bytes;
  }
  return ended;
}
