/** `stamp.v1.Availability` over gRPC: the question of a caller, and the answer of a node. Each front-end of Stamp answers it, too. */
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { type ChannelCredentials, Client, credentials, type ServiceDefinition, type UntypedServiceImplementation } from "@grpc/grpc-js";
import { IsAvailableRequestSchema, type IsAvailableResponse, IsAvailableResponseSchema } from "@stamp/wire";
import type { Availability } from "../availability.ts";

const path = "/stamp.v1.Availability/IsAvailable";
const requestBytes = (): Buffer => Buffer.from(toBinary(IsAvailableRequestSchema, create(IsAvailableRequestSchema)));
const readAnswer = (bytes: Buffer): IsAvailableResponse => fromBinary(IsAvailableResponseSchema, bytes);

/** Asks nodes by gRPC. One connection to each address, made when it is asked first. */
export class GrpcAvailability {
  readonly #credentials: ChannelCredentials;
  readonly #clients = new Map<string, Client>();

  constructor(given: ChannelCredentials = credentials.createInsecure()) {
    this.#credentials = given;
  }

  /** Asks a node whether it takes calls, for `isAvailable` of an EndpointBalancer. Rejects if the node does not answer. */
  readonly ask = (address: string, signal: AbortSignal): Promise<boolean> => {
    let client = this.#clients.get(address);
    if (client === undefined) {
      client = new Client(address, this.#credentials);
      this.#clients.set(address, client);
    }
    const asked = client;
    return new Promise((resolve, reject) => {
      // An event that came before the listener would never be heard.
      if (signal.aborted) return reject(signal.reason);
      const call = asked.makeUnaryRequest(path, requestBytes, readAnswer, {}, (error, answer) => {
        signal.removeEventListener("abort", cancel);
        return error ? reject(error) : resolve(answer?.available ?? false);
      });
      const cancel = (): void => call.cancel();
      signal.addEventListener("abort", cancel, { once: true });
    });
  };

  close(): void {
    for (const client of this.#clients.values()) client.close();
    this.#clients.clear();
  }
}

/** Returns the service of a node: give both to `addService` of a grpc-js server. */
export function availabilityService(availability: Availability): {
  readonly definition: ServiceDefinition;
  readonly implementation: UntypedServiceImplementation;
} {
  const definition: ServiceDefinition = {
    IsAvailable: {
      path,
      requestStream: false,
      responseStream: false,
      requestSerialize: requestBytes,
      requestDeserialize: (bytes: Buffer) => fromBinary(IsAvailableRequestSchema, bytes),
      responseSerialize: (answer: { available: boolean; reason: string }) =>
        Buffer.from(toBinary(IsAvailableResponseSchema, create(IsAvailableResponseSchema, answer))),
      responseDeserialize: readAnswer,
    },
  };
  const implementation: UntypedServiceImplementation = {
    IsAvailable: (_call: unknown, answer: (error: null, value: object) => void) => answer(null, availability.answer()),
  };
  return { definition, implementation };
}
