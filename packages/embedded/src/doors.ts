/** The HTTP doors of a stamp. Their ports stay the same while roles come and go behind them. */
import type { FrontEndRole } from "@stamp/front-end";
import type { HttpBody, HttpHandler, HttpRequest, HttpResponse, Logger } from "@stamp/ports";
import { type HttpListener, serveHttp } from "@stamp/ports-node";
import { EndedError, type RoleLife } from "./life/life.ts";

/** Services that have a door. */
export const services = ["blob", "queue", "table", "file", "dfs"] as const;
export type ServiceName = (typeof services)[number];

export interface BehindDoors {
  readonly frontEnd: FrontEndRole;
  readonly life: RoleLife;
}

export interface DoorsOptions {
  /** Returns the current front-end; undefined while it is down. */
  readonly behind: () => BehindDoors | undefined;
  readonly tls: { readonly certificatePath: string; readonly keyPath: string } | undefined;
  readonly logger: Logger;
}

/** Ends the connection without an answer, as the end of a process does. What the role has not read of the request would hold the connection. */
const brokenOff: HttpResponse = { status: 503, headers: {}, endsConnection: true };

export class Doors {
  readonly #options: DoorsOptions;
  readonly #open = new Map<ServiceName, HttpListener>();
  /** Address of each door, host:port, from its first opening on. */
  readonly #addresses: Map<ServiceName, string>;
  #last: Promise<void> = Promise.resolve();

  /** Makes the doors with `listen`; port 0 is any free port. */
  constructor(listen: (service: ServiceName) => string, options: DoorsOptions) {
    this.#options = options;
    this.#addresses = new Map(services.map((service) => [service, listen(service)]));
  }

  addressOf(service: ServiceName): string {
    return this.#addresses.get(service) as string;
  }

  /** Opens closed doors at their former ports. */
  open(): Promise<void> {
    return this.#afterLast(async () => {
      const { tls, logger } = this.#options;
      for (const service of services) {
        if (this.#open.has(service)) continue;
        const door = await serveHttp(this.#handlerOf(service), { listen: this.addressOf(service), logger, ...(tls && { tls }) });
        this.#open.set(service, door);
        this.#addresses.set(service, door.address);
      }
    });
  }

  /** `graceMs`: time for requests in progress, in milliseconds; undefined: the door's own time. */
  close(graceMs?: number): Promise<void> {
    return this.#afterLast(async () => {
      const doors = [...this.#open.values()];
      this.#open.clear();
      await Promise.all(doors.map((door) => door.close(graceMs)));
    });
  }

  /** Runs a change after the one before: a port is free only when its door has closed. */
  #afterLast(change: () => Promise<void>): Promise<void> {
    const changed = this.#last.then(change);
    this.#last = changed.catch(() => {});
    return changed;
  }

  #handlerOf(service: ServiceName): HttpHandler {
    const answer = async (request: HttpRequest): Promise<HttpResponse> => {
      const behind = this.#options.behind();
      if (behind === undefined) return brokenOff;
      try {
        const response = await behind.life.outside(() => behind.frontEnd[service](request));
        const { body } = response;
        return body === undefined || body instanceof Uint8Array ? response : { ...response, body: livedBody(body, behind.life) };
      } catch (error) {
        if (error instanceof EndedError) return brokenOff;
        throw error;
      }
    };
    const refused: HttpHandler["refused"] = (why) =>
      this.#options.behind()?.frontEnd[service].refused?.(why) ?? { status: 400, headers: {} };
    return Object.assign(answer, { refused });
  }
}

/** Returns the body until its role ends; then the client sees a broken connection. */
function livedBody(body: HttpBody, life: RoleLife): HttpBody {
  const taken = body.taken?.bind(body);
  return { ...life.eachOutside(() => body), ...(taken === undefined ? {} : { taken }) };
}
