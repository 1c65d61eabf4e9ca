/** A call as its server sees it: its deadline by the local clock, and a signal that is made only when a handler asks for it. */
import type { CallContext } from "@stamp/ports";
import { GeoDoor, isCaller } from "@stamp/wire";
import type { SimEvent } from "../kernel/event-queue.ts";
import type { Incarnation, SimProcess } from "../kernel/process.ts";

export class ServerCall implements CallContext {
  readonly deadlineMs: number;
  readonly peer: string;
  readonly caller: string | undefined;
  readonly callerName: string | undefined;
  readonly metadata: Readonly<Record<string, string>>;
  giveBackPayload: (() => void) | undefined;
  whenSent: ((sent: () => void) => void) | undefined;
  readonly #server: Incarnation;
  readonly #deadlineUs: number;
  #controller: AbortController | undefined;
  #timer: SimEvent | undefined;
  #aborted = false;
  /** Ends what else belongs to an aborted call; set by a stream. */
  onAbort: (() => void) | undefined;

  constructor(
    server: Incarnation,
    method: string,
    nowMs: number,
    timeoutMs: number,
    client: SimProcess,
    metadata: Readonly<Record<string, string>>,
  ) {
    this.#server = server;
    this.deadlineMs = nowMs + timeoutMs;
    this.#deadlineUs = server.nowUs + Math.ceil(timeoutMs * 1000);
    this.peer = client.name;
    // A person, or a judge, has no role.
    this.caller = client.factory !== undefined && isCaller(client.kind) ? client.kind : undefined;
    // The name of a process stands for that in its certificate. At a geo door callers are of another stamp, and prove none.
    this.callerName = this.caller === undefined || method.startsWith(`${GeoDoor.typeName}/`) ? undefined : client.name;
    this.metadata = metadata;
  }

  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      const leftUs = this.#deadlineUs - this.#server.nowUs;
      if (this.#aborted || leftUs <= 0) this.#controller.abort();
      else this.#timer = this.#server.schedule(leftUs, "deadline", this.peer, () => this.abort());
    }
    return this.#controller.signal;
  }

  get aborted(): boolean {
    return this.#aborted || this.#deadlineUs <= this.#server.nowUs;
  }

  /** Ends the call, because its handler is done. */
  end(): void {
    this.#server.cancel(this.#timer);
    this.onAbort = undefined;
  }

  abort(): void {
    if (this.#aborted) return;
    this.#aborted = true;
    this.#server.cancel(this.#timer);
    this.#controller?.abort();
    this.onAbort?.();
  }
}
