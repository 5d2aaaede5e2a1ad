import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  detailFields,
  type Field,
  languagesOf,
  memberOfRefusal,
  messageFields,
  overrideFields,
  readField,
  settingFields,
  targetKindOf,
  translationFields,
  variableFields,
  variablesOf,
  withLanguage,
  withPushTime,
  withTargetKind,
  withVariable,
  writeField,
} from '../../../ops/console/src/draft/fields.ts';
import {
  isRecord,
  isSameJson,
  type JsonRecord,
  JsonTextError,
  type JsonValue,
  parseJsonText,
  printJson,
} from '../../../ops/console/src/draft/json-text.ts';

const fields: Field[] = [
  ...Object.values({ ...messageFields, ...detailFields, ...settingFields }),
  ...Object.values(overrideFields('ios')),
  ...Object.values(overrideFields('mi')),
  ...Object.values(translationFields('zh-Hans')),
];

/**
 * Numbers as texts, including numbers that a double cannot represent and spellings that JavaScript
 * would change.
 */
const numberText = fc.oneof(
  fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n }).map(String),
  fc.constantFrom('1.50', '1e3', '-0', '0.1', '9007199254740993', '1E-7', '12345678901234567890.5'),
);
const name = fc.oneof(
  fc.constantFrom('alert', 'title', 'ios', 'badge', '__proto__', 'constructor', 'article', '1'),
  fc.string({ maxLength: 8 }),
);
const { json } = fc.letrec<{ json: string; members: string }>((tie) => ({
  json: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.oneof(
      numberText,
      fc.string({ unit: 'binary' }).map((text) => JSON.stringify(text)),
    ),
    fc.constantFrom('true', 'false', 'null', '""', '{}', '[]'),
    fc.array(tie('json'), { maxLength: 3 }).map((items) => `[${items.join(' ,')}]`),
    tie('members'),
  ),
  members: fc
    .uniqueArray(fc.tuple(name, tie('json')), { maxLength: 5, selector: ([key]) => key })
    .map(
      (members) =>
        `{${members.map(([key, value]) => `${JSON.stringify(key)} : ${value}`).join(',\n')}}`,
    ),
}));

/**
 * Push bodies as texts. They contain members that the form knows, with values of any kind, and
 * members that it does not know.
 */
const bodyText = fc
  .uniqueArray(
    fc.tuple(
      fc.oneof(
        fc.constantFrom('data', 'where', 'ios', ...fields.map(({ path }) => path[0] ?? '')),
        name,
      ),
      json,
    ),
    { maxLength: 8, selector: ([key]) => key },
  )
  .map(
    (members) => `{${members.map(([key, value]) => `${JSON.stringify(key)}:${value}`).join(',')}}`,
  );

function bodyOf(text: string): JsonRecord {
  const value = parseJsonText(text);
  if (!isRecord(value)) throw new Error('no record');
  return value;
}

/** Returns every scalar with its path, except the scalars at or below one path. */
function leavesExcept(value: JsonValue, path: readonly string[], at: string[] = []): string[] {
  if (path.length > 0 && path.join('\0') === at.join('\0')) return [];
  const entries = Array.isArray(value)
    ? value.entries()
    : isRecord(value)
      ? Object.entries(value)
      : undefined;
  if (!entries) return [`${JSON.stringify(at)} ${printJson(value)}`];
  return [...entries]
    .flatMap(([key, inner]) => leavesExcept(inner, path, [...at, String(key)]))
    .sort();
}

const rounds = { numRuns: 200 };

describe('the body of a push as JSON text', () => {
  test('is the same after form and JSON, including every digit of its numbers', () => {
    fc.assert(
      fc.property(bodyText, fc.constantFrom(0, 2), (text, indent) => {
        const body = bodyOf(text);
        const printed = printJson(body, indent);
        expect(printJson(bodyOf(printed), indent)).toBe(printed);
        expect(JSON.parse(printed)).toEqual(JSON.parse(text));
        for (const digits of text.match(/\d{17,}/g) ?? []) expect(printed).toContain(digits);
      }),
      rounds,
    );
  });

  test('keeps all other members when a field of the form changes', () => {
    fc.assert(
      fc.property(
        bodyText,
        fc.constantFrom(...fields),
        fc.constantFrom('', '17', 'a, b'),
        (text, field, value) => {
          const body = bodyOf(text);
          if (readField(body, field) === undefined) return;
          const changed = writeField(body, field, value);
          expect(leavesExcept(changed, field.path)).toEqual(leavesExcept(body, field.path));
        },
      ),
      rounds,
    );
  });

  test('does not change when each field writes the value that it shows', () => {
    const filled = fc.record({
      data: fc.record({
        alert: fc.string({ minLength: 1 }),
        badge: fc.nat(),
        silent: fc.constant(true),
      }),
      channels: fc.array(fc.stringMatching(/^[A-Za-z0-9_=-]{1,9}$/), { minLength: 1 }),
      push_time: fc.constant('2030-01-02T03:04:00.000Z'),
      flow_control: fc.nat(),
      x: fc.integer(),
    });
    fc.assert(
      fc.property(filled, (given) => {
        const body = bodyOf(JSON.stringify(given));
        for (const field of fields)
          expect(isSameJson(writeField(body, field, readField(body, field) ?? 'lost'), body)).toBe(
            true,
          );
      }),
      rounds,
    );
  });

  test.for([
    ['{"a":1,}', 'name', 1, 8],
    ['{"a":1\n "b":2}', 'comma', 2, 2],
    ['{"a" 1}', 'colon', 1, 6],
    ['{"a":01}', 'comma', 1, 7],
    ['{"a":nul}', 'value', 1, 6],
    ['{"a":"b\n"}', 'string', 1, 6],
    ['{"a":1,"a":2}', 'twice', 1, 8],
    ['{"a":1', 'end', 1, 7],
    ['{} {}', 'end', 1, 4],
    ['['.repeat(200), 'depth', 1, 102],
  ] as const)('reports the position at which %s is not JSON', ([text, reason, line, column]) => {
    try {
      parseJsonText(text);
      expect.unreachable();
    } catch (error) {
      if (!(error instanceof JsonTextError)) throw error;
      expect(error).toMatchObject({ reason, line, column });
    }
  });
});

describe('a field of the form', () => {
  const alert = messageFields.alert;

  test('is empty without its member, and unknown for a value of another kind', () => {
    expect(readField(bodyOf('{}'), alert)).toBe('');
    expect(readField(bodyOf('{"data":{"alert":{"body":"x"}}}'), alert)).toBeUndefined();
    expect(readField(bodyOf('{"data":"x"}'), alert)).toBeUndefined();
    expect(readField(bodyOf('{"channels":["a,b"]}'), settingFields.channels)).toBeUndefined();
  });

  test('removes its member when it is emptied, and objects that become empty', () => {
    const body = bodyOf('{"data":{"alert":"x","ios":{"title":"y"}}}');
    expect(printJson(writeField(body, overrideFields('ios').title, ''))).toBe(
      '{"data":{"alert":"x"}}',
    );
  });

  test('writes numbers, lists and times of its time zone', () => {
    expect(printJson(writeField({}, settingFields.pace, '2,500'))).toBe('{"flow_control":2500}');
    expect(printJson(writeField({}, settingFields.channels, 'news，sale,'))).toBe(
      '{"channels":["news","sale"]}',
    );
    expect(printJson(writeField({}, settingFields.pace, '1.5'))).toBe('{"flow_control":1.5}');
    const unfit = writeField({}, settingFields.pace, '1e3');
    expect(readField(unfit, settingFields.pace)).toBe('1e3');
    const time = writeField({}, settingFields.pushTime, '2030-05-06T07:08');
    expect(time.push_time).toBe(new Date(2030, 4, 6, 7, 8).toISOString());
    expect(readField(time, settingFields.pushTime)).toBe('2030-05-06T07:08');
  });
});

test('a time that is emptied while it is edited does not send the push at once', () => {
  for (const field of [settingFields.pushTime, settingFields.localTime]) {
    const emptied = writeField({ push_time: '2030-05-06T07:08' }, field, '');
    expect(emptied).toEqual({ push_time: '' });
    expect(readField(emptied, field)).toBe('');
    expect(writeField({}, field, '')).toEqual({});
  }
});

test('a time is one moment everywhere, or the local time of each device', () => {
  const time = new Date(2030, 4, 6, 7, 8);
  const local = withPushTime({ data: {}, default_time_zone: 'UTC' }, time, true);
  expect(local).toEqual({
    data: {},
    push_time: '2030-05-06T07:08',
    push_time_local: true,
    default_time_zone: 'UTC',
  });
  expect(readField(local, settingFields.localTime)).toBe('2030-05-06T07:08');
  expect(withPushTime(local, time, false)).toEqual({ data: {}, push_time: time.toISOString() });
  expect(withPushTime(local, null, false)).toEqual({ data: {} });
  expect(Object.keys(withTargetKind({ ...local, where: {} }, 'devices'))).not.toContain(
    'push_time_local',
  );
});

test('another kind of target removes the previous target and times that would be ignored', () => {
  const body = bodyOf(
    '{"where":{"a":1},"channels":["x"],"push_time":"2030-01-01T00:00:00Z","data":{},"z":1}',
  );
  const devices = withTargetKind(body, 'devices');
  expect(targetKindOf(devices)).toBe('devices');
  expect(Object.keys(devices)).toEqual(['device_type', 'device_ids', 'data', 'z']);
  expect(Object.keys(withTargetKind(devices, 'cql'))).toEqual(['cql', 'data', 'z']);
  expect(withTargetKind(body, 'where')).toBe(body);
});

test('a refusal is shown at the member that it names', () => {
  const member = (code: number, message: string) => memberOfRefusal({ code, message });
  expect(member(111, 'data.alert: expected a string, or an object for iOS.')).toBe('data.alert');
  expect(member(1, 'device_type is required.')).toBe('device_type');
  expect(member(112, 'Invalid channel name.')).toBe('channels');
  expect(member(1, 'There is no such app.')).toBeUndefined();
});

test('a translation is added, written and removed, and the last one with its member', () => {
  const body = { where: {}, data: { alert: 'a' } };
  const two = withLanguage(withLanguage(body, 'en', true), 'zh-Hans', true);
  expect(languagesOf(two)).toEqual(['en', 'zh-Hans']);
  const written = writeField(two, translationFields('zh-Hans').alert, '你好');
  expect(written.languages).toEqual({ en: {}, 'zh-Hans': { alert: '你好' } });
  const one = withLanguage(written, 'en', false);
  expect(one.languages).toEqual({ 'zh-Hans': { alert: '你好' } });
  expect(withLanguage(one, 'zh-Hans', false)).toEqual(body);
});

test('a variable is added with its field, keeps an empty default, and is removed', () => {
  const body = { where: {}, data: { alert: '{{name}}' } };
  const added = withVariable(body, 'name', true);
  expect(variablesOf(added)).toEqual(['name']);
  expect(added.variables).toEqual({ name: { field: 'name', default: '' } });
  const filled = writeField(added, variableFields('name').default, 'friend');
  expect(filled.variables).toEqual({ name: { field: 'name', default: 'friend' } });
  expect(writeField(filled, variableFields('name').default, '').variables).toEqual(added.variables);
  expect(withVariable(filled, 'name', false)).toEqual(body);
});
