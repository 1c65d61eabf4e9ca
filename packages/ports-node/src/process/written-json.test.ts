import { strict as assert } from "node:assert";
import { test } from "node:test";
import { parseWrittenJson } from "./written-json.ts";

test("JSON that people write: what is right is what JSON.parse says, also with brackets, commas and keys inside of strings", () => {
  for (const text of [
    "null",
    "3",
    '"a"',
    "[]",
    "{}",
    '{"a":{"a":[{"a":1},{"a":2}],"b":"a"},"b":{"a":"\\"a\\":1,{[","\\\\":":"}}',
    '["a","a",{"a":"b"},"b"]',
    '{ "a" : "x" , "b" : [ 1.5e-3 , true , null , "a" ] }',
  ]) {
    assert.deepEqual(parseWrittenJson(text), JSON.parse(text), text);
  }
  assert.deepEqual(parseWrittenJson('\uFEFF{"a":1}'), { a: 1 });
});

test("JSON that people write: a key that stands twice is refused with its place, as is a key that objects can't hold", () => {
  const refused = (text: string, message: RegExp): void => assert.throws(() => parseWrittenJson(text), message, text);
  refused('{"a":1,"a":1}', /^SyntaxError: a stands there twice$/);
  refused('{"hosts":{"a":{},"b":{},"a":{}}}', /hosts\.a stands there twice/);
  refused('{"l":[1,{"x":1},{"x":1,"y":[],"x":2}]}', /l\.2\.x stands there twice/);
  refused('{"a":1,"\\u0061":2}', /a stands there twice/);
  refused('{"a":1,"a":2,"b":{"c":1,"c":2}}', /a stands there twice; b\.c stands there twice/);
  refused('{"hosts":{"__proto__":{}}}', /hosts\.__proto__ is no name that can be used/);
  refused("{", /SyntaxError/);
});
