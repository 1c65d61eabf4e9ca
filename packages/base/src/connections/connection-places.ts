/**
 * The places for connections of a door, and who gives way when they are full. A connection is busy while a request of it is served; before
 * and between requests it is idle, whatever it has sent of a head.
 *
 * - At the bound of one address its own oldest idle connection ends for a new one; if all are busy, the new one is refused.
 * - At the bound of all, the address with most connections gives one up: its oldest idle one, or else its oldest busy one. An address never
 *   gives way to one that would then have as many or more: the new connection is refused.
 */
export interface PlacesOptions {
  readonly connectionsMax: number;
  /** Connections from one address at most. */
  readonly connectionsPerAddressMax: number;
}

interface Of<C> {
  /** Idle connections, the one that was idle first in front. */
  readonly idle: Set<C>;
  readonly busy: Set<C>;
}

export class ConnectionPlaces<C> {
  readonly #options: PlacesOptions;
  readonly #addresses = new Map<string, Of<C>>();
  readonly #addressOf = new Map<C, string>();

  constructor(options: PlacesOptions) {
    this.#options = options;
  }

  get count(): number {
    return this.#addressOf.size;
  }

  /** Takes a new connection in. The one that has to end for it, which has left already; the new one itself if it is refused. */
  add(connection: C, address: string): C | undefined {
    const { connectionsMax, connectionsPerAddressMax } = this.#options;
    const own = this.#addresses.get(address);
    let out: C | undefined;
    if (own && sizeOf(own) >= connectionsPerAddressMax) {
      out = first(own.idle);
      if (out === undefined) return connection;
    } else if (this.#addressOf.size >= connectionsMax) {
      const most = this.#most();
      if (!most || sizeOf(most) <= (own ? sizeOf(own) : 0) + 1) {
        // The address of the new one is among those that have most: it may only take its own place.
        out = own && first(own.idle);
        if (out === undefined) return connection;
      } else out = first(most.idle) ?? first(most.busy);
    }
    if (out !== undefined) this.remove(out);
    const of = this.#addresses.get(address) ?? { idle: new Set(), busy: new Set() };
    this.#addresses.set(address, of);
    of.idle.add(connection);
    this.#addressOf.set(connection, address);
    return out;
  }

  /** Calls a function with each idle connection and its address. */
  forEachIdle(call: (connection: C, address: string) => void): void {
    for (const [address, { idle }] of this.#addresses) for (const connection of idle) call(connection, address);
  }

  /** Notes that a request of the connection is served. */
  busy(connection: C): void {
    const of = this.#of(connection);
    if (of?.idle.delete(connection)) of.busy.add(connection);
  }

  /** Notes that all requests of the connection were answered. */
  idle(connection: C): void {
    const of = this.#of(connection);
    if (of?.busy.delete(connection)) of.idle.add(connection);
  }

  remove(connection: C): void {
    const address = this.#addressOf.get(connection);
    const of = this.#of(connection);
    if (address === undefined || !of) return;
    this.#addressOf.delete(connection);
    of.idle.delete(connection);
    of.busy.delete(connection);
    if (sizeOf(of) === 0) this.#addresses.delete(address);
  }

  #of(connection: C): Of<C> | undefined {
    const address = this.#addressOf.get(connection);
    return address === undefined ? undefined : this.#addresses.get(address);
  }

  #most(): Of<C> | undefined {
    let most: Of<C> | undefined;
    for (const of of this.#addresses.values()) if (most === undefined || sizeOf(of) > sizeOf(most)) most = of;
    return most;
  }
}

const sizeOf = <C>({ idle, busy }: Of<C>): number => idle.size + busy.size;

const first = <C>(all: Set<C>): C | undefined => all.values().next().value;
