/** The roles of a stamp from one reset to the next, connected by direct calls. */
import { FailureError } from "@stamp/base";
import type { FrontEndRole } from "@stamp/front-end";
import { type Clock, type Logger, sleep, type Tracer, type Transport } from "@stamp/ports";
import { InProcessNetwork, metricsText, NodeClock } from "@stamp/ports-node";
import { HostedRole } from "./life/hosted-role.ts";
import type { PlannedRole } from "./plan.ts";

export interface GenerationOptions {
  readonly dataDir: string | undefined;
  readonly memoryBytesMax: number;
  readonly logger: Logger;
  readonly readyTimeoutMs: number;
  readonly tracerOf?: ((name: string) => Tracer) | undefined;
}

export class Generation {
  readonly #network = new InProcessNetwork();
  readonly #roles: readonly HostedRole[];
  readonly #readyTimeoutMs: number;
  readonly #clock: Clock = new NodeClock();
  #hasServed = false;

  constructor(planned: readonly PlannedRole[], options: GenerationOptions) {
    const transport = (name: string): Transport => this.#network.transport(name);
    this.#roles = planned.map((each) => new HostedRole({ ...options, planned: each, transport }));
    this.#readyTimeoutMs = options.readyTimeoutMs;
  }

  get roles(): readonly HostedRole[] {
    return this.#roles;
  }

  get frontEnd(): HostedRole {
    return this.#roles.at(-1) as HostedRole;
  }

  get frontEndRole(): FrontEndRole | undefined {
    return this.frontEnd.role as FrontEndRole | undefined;
  }

  /** Returns a caller that is no role. */
  operator(): Transport {
    return this.#network.transport("operator");
  }

  metrics(): Record<string, string> {
    return Object.fromEntries(
      this.#roles.flatMap(({ name, role }) => (role === undefined ? [] : [[name, metricsText(name.replace(/-\d+$/, ""), name, role)]])),
    );
  }

  async start(): Promise<void> {
    const deadlineMs = this.#deadlineMs();
    // The lock services first: a role that asks before one serves asks again only later.
    const { lockServices = [], others = [] } = Object.groupBy(this.#roles, ({ name }) =>
      name.startsWith("lock-service-") ? "lockServices" : "others",
    );
    await this.#begun(lockServices, lockServices, deadlineMs);
    await this.#begun(others, this.#roles, deadlineMs);
    this.#hasServed = true;
  }

  /** True from the end of `start` on. Before, a front-end that is ready may know of no account yet, and remembers that. */
  get hasServed(): boolean {
    return this.#hasServed;
  }

  /** Starts the role. Resolves as `ready` does. */
  startRole(role: HostedRole): Promise<void> {
    return this.#begun([role], this.#roles, this.#deadlineMs());
  }

  /** Starts the first ones and waits for the second. A role may begin for as long as it waits for others. */
  async #begun(starting: readonly HostedRole[], needed: readonly HostedRole[], deadlineMs: number): Promise<void> {
    const begun = Promise.all(starting.map((role) => role.start()));
    const ready = this.#ready(needed, deadlineMs);
    await Promise.race([begun.then(() => ready), ready]);
  }

  #deadlineMs(): number {
    return this.#clock.monotonicMs() + this.#readyTimeoutMs;
  }

  /** Resolves when these roles, as far as they are not paused or down, serve. Throws FailureError with what they wait for. */
  async #ready(roles: readonly HostedRole[], deadlineMs: number): Promise<void> {
    for (;;) {
      const waiting = roles.filter(({ state, role }) => state === "running" && role?.status.ready !== true);
      if (waiting.length === 0) return;
      if (this.#clock.monotonicMs() >= deadlineMs) {
        const who = waiting.map(({ name, waitsFor }) => `${name} waits for ${waitsFor}`).join("; ");
        throw new FailureError({ code: "deadlineExceeded", reason: "notReady", message: `the stamp is not ready: ${who}`, applied: "no" });
      }
      await sleep(this.#clock, 2);
    }
  }

  /** Ends every role: cleanly, if all of them run. Nothing is left when it throws. */
  async end(how: "cleanly" | "at once"): Promise<void> {
    try {
      if (how === "cleanly" && this.#roles.every(({ state }) => state === "running"))
        for (const role of [...this.#roles].reverse()) await role.leave();
    } finally {
      await Promise.all(this.#roles.map((role) => role.kill()));
    }
  }
}
