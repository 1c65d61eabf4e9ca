/**
 * Authenticates callers over ordinary gRPC: holders of the stamp's secret, each call by a token in its metadata, before
 * a message of it is read. Health is for everybody, and so are services that authorize their callers themselves;
 * reflection is not.
 */
import type { DescService } from "@bufbuild/protobuf";
import { Metadata, ServerInterceptingCall, type ServerInterceptor, status } from "@grpc/grpc-js";
import { type Caller, isCaller, methodsFor } from "@stamp/wire";
import { forbidden } from "../failures.ts";
import { type Credential, type Proven, proofKey, tokenKey } from "./credential.ts";
import { type PeerName, provenTwice } from "./peer-tls.ts";

/** Metadata of an admitted call that the server adds itself: what its token was made with. A caller's own is taken away. */
const provenByKey = "stamp-proven-by";

const health = "/grpc.health.v1.Health/";

export interface GuardOptions {
  /** Services whose callers need not know the secret. */
  readonly open: readonly DescService[];
  readonly credential: () => Credential;
  readonly ports: () => readonly number[];
  /** Returns role and name by the certificate of the peer's connection; undefined: no TLS; `gone`: the connection has ended. */
  readonly callerAt: (peer: string) => PeerName | "gone" | undefined;
  readonly onAdmitted: (peer: string) => void;
  readonly onRefused: (peer: string, why: string) => void;
}

export function guard({ open, credential, ports, callerAt, onAdmitted, onRefused }: GuardOptions): ServerInterceptor {
  const prefixes = [health, ...open.map(({ typeName }) => `/${typeName}/`)];
  return (method, call) => {
    if (prefixes.some((prefix) => method.path.startsWith(prefix))) return new ServerInterceptingCall(call);
    return new ServerInterceptingCall(call, {
      start: (next) =>
        next({
          onReceiveMetadata: (metadata, goOn) => {
            const admission = credential().admit(metadata.get(tokenKey)[0]?.toString(), ports());
            // Handlers, and whoever logs what they are told, need not know it.
            metadata.remove(tokenKey);
            metadata.remove(provenByKey);
            if (admission.kind === "refused") {
              onRefused(call.getPeer(), `${method.path}: ${admission.why}`);
              call.sendStatus({ code: status.UNAUTHENTICATED, details: admission.why, metadata: refusedMetadata() });
              return;
            }
            const certified = callerAt(call.getPeer());
            if (certified === "gone") {
              call.sendStatus({ code: status.UNAUTHENTICATED, details: "its connection has ended", metadata: refusedMetadata() });
              return;
            }
            const proven = provenTwice(admission.by, certified);
            if (typeof proven === "string") {
              onRefused(call.getPeer(), proven);
              call.sendStatus({ code: status.UNAUTHENTICATED, details: proven, metadata: refusedMetadata() });
              return;
            }
            const { caller } = proven;
            if (caller !== undefined && !mayCall(caller, method.path)) {
              const { message } = forbidden(caller, method.path.slice(1));
              onRefused(call.getPeer(), message);
              call.sendStatus({ code: status.PERMISSION_DENIED, details: message, metadata: refusedMetadata() });
              return;
            }
            onAdmitted(call.getPeer());
            metadata.set(provenByKey, provenText(proven));
            if (admission.answer !== undefined) {
              const answer = new Metadata();
              answer.set(proofKey, admission.answer);
              call.sendMetadata(answer);
            }
            goOn(metadata);
          },
        }),
    });
  };
}

/** True if the caller may call the method. Reflection is for people with tools. */
const mayCall = (caller: Caller, path: string): boolean =>
  path.startsWith("/grpc.reflection.") ? caller === "operator" : methodsFor(caller).has(path.slice(1));

/** Returns a text of proven facts; names have no spaces. */
const provenText = ({ id, caller, name }: Proven): string => `${id} ${caller ?? ""} ${name ?? ""}`;

/** Returns the guard's facts about an admitted call. */
export function provenOf(metadata: Metadata): Proven {
  const [id = "", role = "", name = ""] = String(metadata.get(provenByKey)[0] ?? "").split(" ");
  return { id, caller: isCaller(role) ? role : undefined, name: name === "" ? undefined : name };
}

function refusedMetadata(): Metadata {
  const metadata = new Metadata();
  metadata.set("stamp-reason", "unauthorized");
  metadata.set("stamp-applied", "no");
  return metadata;
}
