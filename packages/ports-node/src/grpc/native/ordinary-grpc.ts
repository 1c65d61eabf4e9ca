/** Calls methods as a tool of gRPC does, unary ones too, which processes of a stamp send over the bus: to see what tools get. */
import type { DescService } from "@bufbuild/protobuf";
import type { Address, Client } from "@stamp/ports";
import { NodeClock } from "../../clock.ts";
import type { Credential } from "../credentials/credential.ts";
import type { PeerTls } from "../credentials/peer-tls.ts";
import { defaultLimits } from "../options.ts";
import { LaterClient } from "./later.ts";

export class OrdinaryGrpc {
  readonly #credential: () => Credential;
  readonly #tls: PeerTls | undefined;
  readonly #clients = new Map<Address, LaterClient>();

  constructor(credential: () => Credential, tls?: PeerTls) {
    this.#credential = credential;
    this.#tls = tls;
  }

  client<S extends DescService>(address: Address, service: S): Client<S> {
    let native = this.#clients.get(address);
    if (native === undefined) {
      native = new LaterClient(async () => {
        const { NativeClient } = await import("./native-client.ts");
        return new NativeClient(address, defaultLimits, new NodeClock(), this.#credential, this.#tls);
      });
      this.#clients.set(address, native);
    }
    const methods = service.methods.map((method) => [method.localName, native.method(service, method)]);
    return Object.fromEntries(methods) as unknown as Client<S>;
  }

  async close(): Promise<void> {
    for (const native of this.#clients.values()) native.close();
  }
}
