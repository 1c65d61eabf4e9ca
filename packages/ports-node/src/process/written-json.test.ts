import { strict as assert } from "node:assert";
import { test } from "node:test";
import { parsePlacedJson, parseWrittenJson } from "./written-json.ts";

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

test("JSON that people write: each value has its line and column, and a value that is missing that of the one around it", () => {
  const { at } = parsePlacedJson('{\n  "a": [\n    { "b": 1 },\n    "x"\n  ]\n}');
  assert.deepEqual(at(["a"]), { line: 2, column: 3 });
  assert.deepEqual(at(["a", 0]), { line: 3, column: 5 });
  assert.deepEqual(at(["a", 0, "b"]), { line: 3, column: 7 });
  assert.deepEqual(at(["a", 1, "missing", "more"]), { line: 4, column: 5 });
  assert.deepEqual(at([]), { line: 1, column: 1 });
});

test("JSON that people write: what is no JSON is refused with its line and column", () => {
  const refused = (text: string, place: string): void => assert.throws(() => parsePlacedJson(text), new RegExp(`\\(${place}\\)$`), text);
  refused('{\n  "a": x\n}', "line 2 column 8");
  refused('{\n  "a": [1, 2\n', "line 3 column 1");
  refused('{\n  "a": 1,\n  "a": 2\n}', "line 3 column 3");
  refused("", "line 1 column 1");
});
