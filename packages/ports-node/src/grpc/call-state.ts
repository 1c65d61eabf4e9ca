/**
 * A handler's context of its call. The signal is made only when a handler asks for it: most small calls never do, and
 * it is the most expensive part of starting one.
 */
import type { CallContext } from "@stamp/ports";
import type { Proven } from "./credentials/credential.ts";

export class CallState implements CallContext {
  readonly deadlineMs: number;
  readonly peer: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly authorized: () => void;
  giveBackPayload: (() => void) | undefined;
  whenSent: ((sent: () => void) => void) | undefined;
  readonly caller: string | undefined;
  readonly callerName: string | undefined;
  #controller: AbortController | undefined;
  #aborted = false;

  constructor(
    deadlineMs: number,
    peer: string,
    metadata: Readonly<Record<string, string>>,
    { caller, name }: Pick<Partial<Proven>, "caller" | "name"> = {},
    authorized: () => void = () => {},
  ) {
    this.caller = caller;
    this.callerName = name;
    this.deadlineMs = deadlineMs;
    this.peer = peer;
    this.metadata = metadata;
    this.authorized = authorized;
  }

  get aborted(): boolean {
    return this.#aborted;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#aborted) this.#controller.abort();
    }
    return this.#controller.signal;
  }

  abort(): void {
    this.#aborted = true;
    this.#controller?.abort();
  }
}
