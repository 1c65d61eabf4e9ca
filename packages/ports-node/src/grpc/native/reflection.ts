/**
 * Descriptors with which gRPC tools list and call everything that is served: of the services and of all they import.
 */
import type { DescFile, DescService } from "@bufbuild/protobuf";
import { toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import type { Server } from "@grpc/grpc-js";
import { ReflectionService } from "@grpc/reflection";
import { healthDescriptor, healthServiceName } from "./health-descriptor.ts";

function collect(file: DescFile, files: Map<string, DescFile>): void {
  if (files.has(file.proto.name)) return;
  files.set(file.proto.name, file);
  for (const dependency of file.dependencies) collect(dependency, files);
}

/** Adds reflection of `services` and of the health service, which every process has. */
export function addReflection(server: Server, services: readonly DescService[]): void {
  const files = new Map<string, DescFile>();
  for (const service of services) collect(service.file, files);
  const fileDescriptorProtos = [...files.values()].map((file) => Buffer.from(toBinary(FileDescriptorProtoSchema, file.proto)));
  fileDescriptorProtos.push(Buffer.from(healthDescriptor));
  // The package takes its descriptors from any entry that has them, and serves every service named here.
  const everything = { format: "Protocol Buffer 3 DescriptorProto", type: {}, fileDescriptorProtos };
  const options = { services: [...services.map((service) => service.typeName), healthServiceName] };
  new ReflectionService({ everything } as unknown as ConstructorParameters<typeof ReflectionService>[0], options).addToServer(server);
}
