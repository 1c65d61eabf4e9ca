/** A served port, and strangers that connect to it without the secret of the stamp. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import type { TestContext } from "node:test";
import type { DescService } from "@bufbuild/protobuf";
import { type Client, Metadata, type ServiceError, status } from "@grpc/grpc-js";
import { ok } from "@stamp/base";
import { type ServedService, servedPartly } from "@stamp/ports";
import * as wire from "@stamp/wire";
// Loaded before the first connection, whose time is bounded: on a busy machine loading takes seconds.
import "../../native/grpc-server.ts";
import type { GrpcLimits } from "../../options.ts";
import { GrpcTransport } from "../../transport.ts";
import { tokenKey } from "../credential.ts";
import { SecretCredential } from "../secret-credential.ts";

export const secret = "the secret of this stamp, 32 characters and more";
export const credential = new SecretCredential([secret]);
export const wrong = new SecretCredential(["the secret of another stamp, as long as it is"]);
export const asIs = (bytes: Buffer): Buffer => bytes;
export const allServices = (Object.values(wire) as unknown[]).filter(
  (each): each is DescService => (each as { kind?: unknown } | null)?.kind === "service",
);
export const call = { timeoutMs: 10_000 };

/** Returns the handlers of a service with every unary method counted. */
export const counted = (service: DescService, onCall: () => void): ServedService => {
  const handlers = service.methods
    .filter(({ methodKind }) => methodKind === "unary")
    .map(({ localName }) => [
      localName,
      async () => {
        onCall();
        return ok({});
      },
    ]);
  return { service, handlers: Object.fromEntries(handlers) };
};

export async function served(
  t: TestContext,
  limits: Partial<GrpcLimits> = {},
  services?: ServedService[],
): Promise<{ address: string; port: number }> {
  const transport = new GrpcTransport({ credential: () => credential, limits });
  const listener = await transport.serve(
    "127.0.0.1:0",
    services ?? allServices.filter((each) => each.typeName !== "stamp.v1.Bus").map((each) => servedPartly(each, {})),
  );
  t.after(() => listener.close(0));
  return { address: listener.address, port: Number(listener.address.split(":")[1]) };
}

/** Status of one call over ordinary gRPC. Streams are opened as streams, and nothing is sent on them. */
export function statusOf(
  client: Client,
  path: string,
  streams: boolean,
  token: string | undefined,
  then?: (answer: Metadata) => void,
): Promise<status> {
  const metadata = new Metadata();
  if (token !== undefined) metadata.set(tokenKey, token);
  return new Promise((resolve) => {
    const done = (error: ServiceError | null): void => resolve(error?.code ?? status.OK);
    if (!streams) {
      const one = client.makeUnaryRequest(path, asIs, asIs, Buffer.alloc(0), metadata, { deadline: Date.now() + 10_000 }, done);
      if (then) one.on("metadata", then);
      return;
    }
    const stream = client.makeBidiStreamRequest(path, asIs, asIs, metadata, { deadline: Date.now() + 10_000 });
    stream.on("error", done).on("data", () => {});
    stream.on("end", () => resolve(status.OK));
    if (then) stream.on("metadata", then);
  });
}

export function stranger(t: TestContext, port: number): Socket {
  const socket = connect({ host: "127.0.0.1", port });
  socket.on("error", () => {});
  t.after(() => socket.destroy());
  return socket;
}

/** Returns everything that arrives until the connection ends. */
export async function untilClosed(socket: Socket): Promise<Buffer> {
  const chunks: Buffer[] = [];
  socket.on("data", (chunk: Buffer) => chunks.push(chunk));
  await once(socket, "close");
  return Buffer.concat(chunks);
}

export async function nextBytes(socket: Socket): Promise<Buffer> {
  const [chunk] = (await once(socket, "data")) as unknown as [Buffer];
  return chunk;
}
