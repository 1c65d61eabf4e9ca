/** Every method of every service of the wire, called by somebody who does not know the secret of the stamp. */
import assert from "node:assert/strict";
import { type ClientHttp2Session, connect } from "node:http2";
import * as wire from "@stamp/wire";

interface Service {
  readonly kind: "service";
  readonly typeName: string;
  readonly methods: readonly { readonly name: string }[];
}
const services = (Object.values(wire) as unknown[]).filter((each): each is Service => (each as Service | null)?.kind === "service");
const paths = [
  ...services.flatMap((service) => service.methods.map((method) => `/${service.typeName}/${method.name}`)),
  "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
];
/** Numbers of gRPC. */
export const grpcStatus = { ok: "0", unimplemented: "12", unauthenticated: "16" } as const;
/** Services that let everybody call: health, whether a front-end is available, and signals, which ask for a token of the account. */
const open = ["/grpc.health", "/stamp.v1.Availability/", "/stamp.v1.Signals/"];

/** Status of a call whose caller sends the headers and, but for open services, no message: a server that refuses it waits for nothing. */
export function statusOf(session: ClientHttp2Session, path: string, token: string | undefined): Promise<string> {
  const stream = session.request({
    ":method": "POST",
    ":path": path,
    "content-type": "application/grpc",
    te: "trailers",
    ...(token === undefined ? {} : { "stamp-token": token }),
  });
  return new Promise<string>((resolve, reject) => {
    const told = (headers: Record<string, unknown>): void => {
      if (headers["grpc-status"] !== undefined) resolve(String(headers["grpc-status"]));
    };
    stream
      .on("response", told)
      .on("trailers", told)
      .on("error", reject)
      .on("data", () => {});
    stream.setTimeout(10_000, () => reject(new Error(`${path} hangs`)));
    if (open.some((prefix) => path.startsWith(prefix))) stream.end(Buffer.alloc(5));
  });
}

/**
 * Asserts that a process refuses every method to callers without a token and with a foreign one, and that health answers. Returns the methods
 * that the process serves; those of other services are there for nobody. `foreign`: makes a token for a port with another secret.
 */
export async function assertEveryMethodRefused(
  { grpc, name }: { readonly grpc: string; readonly name: string },
  foreign: (port: number) => string,
): Promise<ReadonlySet<string>> {
  const served = new Set<string>();
  const session = connect(`http://${grpc}`);
  try {
    for (const token of [undefined, foreign(Number(grpc.split(":")[1]))]) {
      const codes = await Promise.all(paths.map(async (path) => [path, await statusOf(session, path, token)] as const));
      for (const [path, code] of codes) {
        if (code === grpcStatus.unauthenticated) served.add(path);
        else if (path === "/stamp.v1.Availability/IsAvailable" && name.startsWith("front-end")) assert.equal(code, grpcStatus.ok, name);
        else assert.equal(code, grpcStatus.unimplemented, `${name} ${path}`);
      }
    }
    assert.ok(served.has("/stamp.v1.Status/GetStatus") && served.size > 4, `${name}: ${[...served]}`);
    assert.equal(await statusOf(session, "/grpc.health.v1.Health/Check", undefined), grpcStatus.ok, name);
  } finally {
    session.destroy();
  }
  return served;
}
