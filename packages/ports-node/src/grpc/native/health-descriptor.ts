/**
 * The descriptor of the standard health service, for reflection. Source: grpc/health/v1/health.proto of the gRPC project. The one that
 * grpc-health-check brings was made by protobufjs: its map entry has a name that Go's tools (grpcurl, buf) refuse.
 */

import type { MessageInitShape } from "@bufbuild/protobuf";
import { create, toBinary } from "@bufbuild/protobuf";
import {
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  type FieldDescriptorProtoSchema,
  FileDescriptorProtoSchema,
} from "@bufbuild/protobuf/wkt";

const scope = "grpc.health.v1";
const { OPTIONAL, REPEATED } = FieldDescriptorProto_Label;
const { STRING, MESSAGE, ENUM } = FieldDescriptorProto_Type;
type Field = MessageInitShape<typeof FieldDescriptorProtoSchema>;

const name = (text: string, number: number): Field => ({ name: text, number, label: OPTIONAL, type: STRING, jsonName: text });
const answer = `.${scope}.HealthCheckResponse`;
const states = ["UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"];

export const healthServiceName: string = `${scope}.Health`;

export const healthDescriptor: Uint8Array<ArrayBuffer> = toBinary(
  FileDescriptorProtoSchema,
  create(FileDescriptorProtoSchema, {
    name: "grpc/health/v1/health.proto",
    package: scope,
    syntax: "proto3",
    messageType: [
      { name: "HealthCheckRequest", field: [name("service", 1)] },
      {
        name: "HealthCheckResponse",
        field: [{ name: "status", number: 1, label: OPTIONAL, type: ENUM, typeName: `${answer}.ServingStatus`, jsonName: "status" }],
        enumType: [{ name: "ServingStatus", value: states.map((state, number) => ({ name: state, number })) }],
      },
      { name: "HealthListRequest" },
      {
        name: "HealthListResponse",
        field: [
          {
            name: "statuses",
            number: 1,
            label: REPEATED,
            type: MESSAGE,
            typeName: `.${scope}.HealthListResponse.StatusesEntry`,
            jsonName: "statuses",
          },
        ],
        nestedType: [
          {
            name: "StatusesEntry",
            field: [name("key", 1), { name: "value", number: 2, label: OPTIONAL, type: MESSAGE, typeName: answer, jsonName: "value" }],
            options: { mapEntry: true },
          },
        ],
      },
    ],
    service: [
      {
        name: "Health",
        method: [
          { name: "Check", inputType: `.${scope}.HealthCheckRequest`, outputType: answer },
          { name: "Watch", inputType: `.${scope}.HealthCheckRequest`, outputType: answer, serverStreaming: true },
          { name: "List", inputType: `.${scope}.HealthListRequest`, outputType: `.${scope}.HealthListResponse` },
        ],
      },
    ],
  }),
);
