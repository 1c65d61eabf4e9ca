/** A transport that a conformance test makes, serves and closes, and readings of its answers. */
import type { DescService } from "@bufbuild/protobuf";
import type { Outcome } from "@stamp/base";
import { FailureError, refused } from "@stamp/base";
import type { Clock } from "../clock.ts";
import { sleep } from "../clock.ts";
import type { Address, Handlers, Listener, ServedService, Transport } from "../transport.ts";
import type { RegisterTest } from "./conformance.ts";
import { check } from "./conformance.ts";

export interface TransportUnderTest {
  readonly clock: Clock;
  readonly server: Transport;
  /** Transport of another process, where that means something. */
  readonly client: Transport;
  /** Address to give to `serve`. */
  readonly listen: Address;
  /** Address at which nobody listens. */
  readonly absent: Address;
  dispose(): Promise<void>;
}

/** Serves only some methods of a service; the others are refused. */
export function servedPartly<S extends DescService>(service: S, handlers: Partial<Handlers<S>>): ServedService {
  const all: Record<string, unknown> = {};
  for (const method of service.methods) {
    all[method.localName] = async () => refused("unimplemented", "unknownMethod", `${method.name} is not part of this test`);
  }
  return { service, handlers: Object.assign(all, handlers) as Handlers<S> };
}

export function failureOf<T>(outcome: Outcome<T>, what: string): FailureError["failure"] {
  if (outcome.ok) throw new Error(`${what}: expected a failure, got a value`);
  return outcome.failure;
}

export function answerOf<T>(outcome: Outcome<T>): T {
  if (!outcome.ok) throw new FailureError(outcome.failure);
  return outcome.value;
}

export const waitUntil = async (clock: Clock, condition: () => boolean, what: string): Promise<void> => {
  for (let i = 0; i < 500; i++) {
    if (condition()) return;
    await sleep(clock, 10);
  }
  check(false, `never happened: ${what}`);
};

type Serve = (...services: ServedService[]) => Promise<Listener>;
export type TransportTest = (name: string, run: (given: TransportUnderTest, serve: Serve) => Promise<void>) => void;

/** Registers tests that each get a transport of their own, which is closed with its listeners afterwards. */
export function transportTests(register: RegisterTest, make: () => Promise<TransportUnderTest>): TransportTest {
  return (name, run) =>
    register(`transport: ${name}`, async () => {
      const given = await make();
      const listeners: Listener[] = [];
      try {
        await run(given, async (...services) => {
          const listener = await given.server.serve(given.listen, services);
          listeners.push(listener);
          return listener;
        });
      } finally {
        await given.client.close();
        for (const listener of listeners) await listener.close(0);
        await given.server.close();
        await given.dispose();
      }
    });
}
