/** Services as the transports use them: a method with its codecs, its lane and, when served, its handler. */
import type { DescMethod, DescService, Message } from "@bufbuild/protobuf";
import type { Failure, Outcome } from "@stamp/base";
import { FailureError } from "@stamp/base";
import type { CallContext, Logger, ServedService } from "@stamp/ports";
import { type RequestCheck, requestCheckOf } from "@stamp/wire";
import type { MessageCodec } from "./message-codec.ts";
import { codecOf, payloadField } from "./message-codec.ts";

export type Lane = "control" | "bulk";

export type UnaryHandler = (request: Message, context: CallContext) => Promise<Outcome<object>>;

/** Returns `stamp.v1.ExtentNode/Append` */
export const methodName = (service: DescService, method: DescMethod): string => `${service.typeName}/${method.name}`;

/** Returns the lane of a method. What may carry a payload has one of its own, so that small calls do not stand behind large ones. */
export const laneOf = (method: DescMethod): Lane =>
  payloadField(method.input) !== undefined || payloadField(method.output) !== undefined ? "bulk" : "control";

export interface ServedUnary {
  readonly name: string;
  readonly request: MessageCodec;
  readonly answer: MessageCodec;
  readonly handler: UnaryHandler;
  /** Check of what a request does against the table of callers; undefined if all requests do the same. */
  readonly check: RequestCheck | undefined;
}

export function servedUnaries(services: readonly ServedService[]): Map<string, ServedUnary> {
  const methods = new Map<string, ServedUnary>();
  for (const { service, handlers } of services) {
    for (const method of service.methods) {
      if (method.methodKind !== "unary") continue;
      const handle = (handlers as Record<string, UnaryHandler>)[method.localName];
      if (handle === undefined) continue;
      const name = methodName(service, method);
      const handler = handle.bind(handlers) as UnaryHandler;
      methods.set(name, { name, request: codecOf(method.input), answer: codecOf(method.output), handler, check: requestCheckOf(name) });
    }
  }
  return methods;
}

/**
 * Returns the failure that the caller gets for a handler's error. Only a FailureError was meant; any other one is a bug
 * of ours and is logged.
 */
export function failureOfThrown(error: unknown, what: string, logger: Logger): Failure {
  if (error instanceof FailureError) return error.failure;
  logger.error("a handler failed by a bug", { method: what, error });
  return { code: "internal", reason: "bug", message: `${what} failed by a bug in the service (see its log)`, applied: "unknown" };
}
