/** Names of tables and properties, and keys of entities ("Understanding the Table service data model"). */
import { type Parsed, parsed, rejected } from "../rest-error.ts";

export const keyBytesMax = 1024;
export const propertyNameCharactersMax = 255;

export function checkTableName(name: string): Parsed<string> {
  if (!/^[A-Za-z][A-Za-z0-9]*$/.test(name) || name.toLowerCase() === "tables") return rejected("InvalidResourceName");
  if (name.length < 3 || name.length > 63) {
    return rejected("OutOfRangeInput", {}, { message: "The specified resource name length is not within the permissible limits." });
  }
  return parsed(name);
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what keys must not have.
const notInKeys = /[/\\#?\u0000-\u001f\u007f-\u009f]/;

/** Checks a key. The empty text is a key. Its length counts in UTF-16, as the service does. */
export function checkKey(name: "PartitionKey" | "RowKey", value: string): Parsed<string> {
  if (value.length * 2 > keyBytesMax) return rejected("KeyValueTooLarge", { PropertyName: name });
  if (notInKeys.test(value) || !value.isWellFormed()) {
    return rejected(
      "OutOfRangeInput",
      { PropertyName: name },
      { message: `The '${name}' parameter of value '${value.toWellFormed()}' is out of range.` },
    );
  }
  return parsed(value);
}

/** Identifier by the rules of C#: names of properties. */
const identifier = /^[\p{L}\p{Nl}_][\p{L}\p{Nl}\p{Nd}\p{Mn}\p{Mc}\p{Pc}\p{Cf}]*$/u;

export function checkPropertyName(name: string): Parsed<string> {
  if (name.length > propertyNameCharactersMax) return rejected("PropertyNameTooLong");
  return identifier.test(name) ? parsed(name) : rejected("PropertyNameInvalid", { PropertyName: name.toWellFormed() });
}
