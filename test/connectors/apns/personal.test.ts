import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { renderApnsText } from '../../../connectors/apns/payload.ts';
import { renderTexts } from '../../../connectors/apns/personal.ts';
import type {
  AttemptResult,
  PushMessage,
  Recipient,
} from '../../../connectors/contract/connector.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';
import { filled, type Values } from '../../../shared/domain/pushes/variables.ts';

const message: PushMessage = {
  objectId: 'Personal00000001',
  data: {},
  prod: 'prod',
  createdAtMs: 0,
  expiresAtMs: 1_800_000_000_000,
};
const names = ['name', 'level'];

const recipientOf = (index: number, badge: number | null): Recipient => ({
  index,
  id: index,
  deviceToken: 'ab',
  deviceType: 'ios',
  topic: null,
  teamId: null,
  badge,
});

/** Renders texts together. Returns the body with the push type, or the reason, of each text. */
function together(data: JsonObject, values: Values[], badge: number | null = null): string[] {
  const results: string[] = values.map(() => 'unreported');
  const report = (index: number, attempt: AttemptResult) => {
    results[index] = 'reason' in attempt ? attempt.reason : attempt.kind;
  };
  const groups = values.map((one, index) => ({
    values: one,
    recipients: [recipientOf(index, badge)],
  }));
  const dataOf = (one: Values) => filled(data, one);
  for (const { bodies, shared } of renderTexts({ message, report }, { dataOf, names, groups }))
    for (const [index, body] of bodies) results[index] = `${shared.pushType} ${body}`;
  return results;
}

/** Renders each text as a separate message. */
const alone = (data: JsonObject, values: Values[], badge = '1'): string[] =>
  values.map((one) => {
    const rendering = renderApnsText({ ...message, data: filled(data, one) });
    if (!rendering.ok) return rendering.error;
    const { badgeAt, pushType, text } = rendering.payload;
    return `${pushType} ${badgeAt === undefined ? text : text.slice(0, badgeAt) + badge + text.slice(badgeAt)}`;
  });

const valuesOf = (name: string, level: string): Values => new Map(Object.entries({ name, level }));

describe('texts of a push with variables', () => {
  test('have the same bodies together as alone, for all values', () => {
    const piece = fc.oneof(
      fc.constantFrom('{{name}}', '{{ level }}', '{{name}}{{level}}', '"', '\\', '😀', '{{', '\n'),
      fc.string({ unit: 'binary', maxLength: 12 }),
    );
    const text = fc.array(piece, { maxLength: 6 }).map((pieces) => pieces.join(''));
    const value = fc.oneof(
      fc.constantFrom('', '{{name}}', '","x":"', '\\', '\ud83d', '\ude00'),
      text,
    );
    const data = fc.record({
      alert: fc.oneof(
        text,
        fc.record({ body: text, 'loc-args': fc.array(text, { maxLength: 3 }) }),
      ),
      title: text,
      note: text,
      badge: fc.constantFrom(1, 'Increment'),
      ios: fc.record({ alert: text, thread: text }, { requiredKeys: [] }),
    });
    fc.assert(
      fc.property(
        data,
        fc.array(fc.tuple(value, value), { minLength: 1, maxLength: 4 }),
        (one, pairs) => {
          const values = pairs.map(([name, level]) => valuesOf(name, level));
          expect(together(one as JsonObject, values).map(whole)).toEqual(
            alone(one as JsonObject, values).map(whole),
          );
        },
      ),
      { numRuns: 100 },
    );
  });

  test('that are empty for one device change only its push type', () => {
    const data = { alert: '{{name}}', 'content-available': 1 };
    const values = [valuesOf('Ann', ''), valuesOf('', '')];
    expect(together(data, values)).toEqual([
      'alert {"aps":{"alert":"Ann","content-available":1}}',
      'background {"aps":{"content-available":1}}',
    ]);
  });

  test('fail only for the devices whose values exceed the limit in written bytes', () => {
    const data = { alert: '{{name}}' };
    const maxBytes = 4096 - '{"aps":{"alert":""}}'.length;
    const fit = valuesOf('\n'.repeat(maxBytes / 2), 'x');
    const values = [
      fit,
      valuesOf(`${fit.get('name')}x`, 'x'),
      valuesOf('é'.repeat(maxBytes / 2 + 1), 'x'),
    ];
    const [sent = '', ...refused] = together(data, values);
    expect(Buffer.byteLength(sent)).toBe('alert '.length + 4096);
    expect(refused).toEqual([
      'the iOS payload has 4097 bytes; APNs takes at most 4096',
      'the iOS payload has 4098 bytes; APNs takes at most 4096',
    ]);
    expect([sent, ...refused]).toEqual(alone(data, values));
  });

  test('include the badge of each device, and may be shorter than their placeholders', () => {
    const long = { alert: `${'x'.repeat(4040)}{{name}}`, badge: 'Increment' };
    const values = [valuesOf('A', 'x')];
    expect(together(long, values, 7)).toEqual(alone(long, values, '7'));
    expect(together(long, values, null)).toEqual(alone(long, values));
    expect(together(long, values, 7)[0]).toContain('"badge":7,');
  });
});

/**
 * Half a surrogate pair in a text and half in a value form one character in the whole text, but two
 * escapes in its parts.
 */
const whole = (body: string): string => {
  const at = body.indexOf('{');
  return at === -1 ? body : body.slice(0, at) + JSON.stringify(JSON.parse(body.slice(at)));
};
