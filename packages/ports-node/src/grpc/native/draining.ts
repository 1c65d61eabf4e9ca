/**
 * The end of a gRPC server whose calls in progress may take a while. grpc-js would say goodbye (GOAWAY) to every connection at once, and a
 * connection that has said it answers no keepalive ping of Node: both sides take it for lost at the next ping, and cut its calls long before
 * their time is over. So a connection is told when its last call has ended, and new calls are refused until then.
 */
import type { Http2Server, ServerHttp2Session } from "node:http2";
import { type Server, ServerInterceptingCall, type ServerInterceptor } from "@grpc/grpc-js";
import { stoppingFailure } from "../failures.ts";
import { toStatus } from "./status.ts";

const health = "/grpc.health.v1.Health/";

export class Draining {
  /** Open connections, each with the number of its streams. */
  readonly #sessions = new Map<ServerHttp2Session, number>();
  #begun = false;

  /** Refuses calls that come later as not applied. Health goes on: it says that nothing is served. */
  readonly interceptor: ServerInterceptor = (method, call) => {
    if (!this.#begun || method.path.startsWith(health)) return new ServerInterceptingCall(call);
    return new ServerInterceptingCall(call, { start: () => call.sendStatus(toStatus(stoppingFailure)) });
  };

  /**
   * Follows the connections of the server, whose doors must have been made. Returns false if grpc-js does not keep them where it is known to:
   * then connections end with the server only. `server.test.ts` fails when an update moves them.
   */
  watch(server: Server): boolean {
    const servers = Reflect.get(server, "http2Servers") as Map<Http2Server, unknown> | undefined;
    if (!(servers instanceof Map)) return false;
    for (const one of servers.keys()) one.on("session", (session) => this.#follow(session));
    return servers.size > 0;
  }

  /** Number of open connections. */
  get connections(): number {
    return this.#sessions.size;
  }

  /** Sends goodbye to connections without a call now, and to the others after their last one. */
  begin(): void {
    this.#begun = true;
    for (const [session, streams] of this.#sessions) if (streams === 0) session.close();
  }

  #follow(session: ServerHttp2Session): void {
    this.#sessions.set(session, 0);
    session.once("close", () => this.#sessions.delete(session));
    session.on("stream", (stream) => {
      this.#count(session, 1);
      stream.once("close", () => this.#count(session, -1));
    });
  }

  #count(session: ServerHttp2Session, change: number): void {
    const streams = (this.#sessions.get(session) ?? 0) + change;
    if (!this.#sessions.has(session)) return;
    this.#sessions.set(session, streams);
    if (this.#begun && streams === 0) session.close();
  }
}
