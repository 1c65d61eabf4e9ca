/** The ForeignCalls port over grpc-js: one connection for each server, which is made at the first call. */
import type { DescService } from "@bufbuild/protobuf";
import type { Client, Clock, ForeignCalls, ForeignServer } from "@stamp/ports";
import { LaterClient } from "./native/later.ts";

export class NodeForeignCalls implements ForeignCalls {
  readonly #clock: Clock;
  readonly #connections = new Map<string, LaterClient>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  client<S extends DescService>(server: ForeignServer, service: S): Client<S> {
    const key = JSON.stringify(server);
    const connection =
      this.#connections.get(key) ??
      new LaterClient(async () => {
        const { ForeignConnection } = await import("./native/foreign-connection.ts");
        return new ForeignConnection(server, this.#clock);
      });
    this.#connections.set(key, connection);
    return Object.fromEntries(service.methods.map((method) => [method.localName, connection.method(service, method)])) as Client<S>;
  }

  async close(): Promise<void> {
    for (const connection of this.#connections.values()) connection.close();
    this.#connections.clear();
  }
}
