/** A TCP relay on loopback that can be cut: connections are destroyed, and new ones refused, until it is mended. */
import { connect, createServer, type Server, type Socket } from "node:net";

export class Relay {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #cut = false;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async to(host: string, port: number): Promise<Relay> {
    const server = createServer();
    const relay = new Relay(server);
    server.on("connection", (near) => {
      if (relay.#cut) {
        near.destroy();
        return;
      }
      const far = connect(port, host);
      for (const [one, other] of [
        [near, far],
        [far, near],
      ] as const) {
        relay.#sockets.add(one);
        one.on("error", () => {});
        one.on("close", () => {
          relay.#sockets.delete(one);
          other.destroy();
        });
        one.pipe(other);
      }
    });
    await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
    return relay;
  }

  get port(): number {
    return (this.#server.address() as { port: number }).port;
  }

  cut(): void {
    this.#cut = true;
    for (const socket of this.#sockets) socket.destroy();
  }

  mend(): void {
    this.#cut = false;
  }

  close(): void {
    this.cut();
    this.#server.close();
  }
}
