/** Ordinary gRPC definitions from protobuf-es descriptors. Answers and requests travel prepared, so that payloads are copied once. */
import type { DescMethod, DescService, Message } from "@bufbuild/protobuf";
import type { MethodDefinition, ServiceDefinition } from "@grpc/grpc-js";
import type { MessageCodec, PreparedMessage } from "../message-codec.ts";
import { codecOf, preparedToBuffer } from "../message-codec.ts";

export const methodPath = (service: DescService, method: DescMethod): string => `/${service.typeName}/${method.name}`;

export interface StreamCodec {
  readonly path: string;
  readonly request: MessageCodec;
  readonly answer: MessageCodec;
}

export const streamCodec = (service: DescService, method: DescMethod): StreamCodec => ({
  path: methodPath(service, method),
  request: codecOf(method.input),
  answer: codecOf(method.output),
});

export const serializePrepared = (prepared: PreparedMessage): Buffer => preparedToBuffer(prepared);

/** Makes the definition of a service for a server: requests are decoded, answers come encoded. */
export function serverDefinition(service: DescService): ServiceDefinition {
  const definition: Record<string, MethodDefinition<Message, PreparedMessage>> = {};
  for (const method of service.methods) {
    const request = codecOf(method.input);
    definition[method.name] = {
      path: methodPath(service, method),
      requestStream: method.methodKind === "client_streaming" || method.methodKind === "bidi_streaming",
      responseStream: method.methodKind === "server_streaming" || method.methodKind === "bidi_streaming",
      requestSerialize: () => {
        throw new Error("a server sends no requests");
      },
      requestDeserialize: (bytes) => request.decode(bytes),
      responseSerialize: serializePrepared,
      responseDeserialize: () => {
        throw new Error("a server receives no answers");
      },
    };
  }
  return definition as unknown as ServiceDefinition;
}
