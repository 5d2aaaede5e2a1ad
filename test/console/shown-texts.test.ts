import { describe, expect, test } from 'vitest';
import type { VisibleMessage } from '../../ops/console/src/draft/previews.ts';
import { withSamples } from '../../ops/console/src/draft/samples.ts';
import { linesOf } from '../../ops/console/src/pages/push/lines.ts';
import { withNames, withTimes } from '../../ops/console/src/text/sentences.ts';
import { displayName, isConnectorId } from '../../shared/domain/labels.ts';

const nameOf = (id: string) => (isConnectorId(id) ? displayName(id) : id);
const clock = (time: string) => `[${time.slice(11, 16)}]`;

test.for([
  [
    'alert must have at most 127 characters for vendor_b',
    'alert must have at most 127 characters for Xiaomi',
  ],
  ['vendor_a takes less than 4096 bytes', 'Huawei takes less than 4096 bytes'],
  ['there is no vendor_e profile named _default', 'there is no vivo profile named _default'],
  // Members of a message keep their names.
  ['data: vendor_a must be an object', 'data: vendor_a must be an object'],
  ['data: vendor_a.title must be a text', 'data: vendor_a.title must be a text'],
  ['the member `vendor_b` is unknown', 'the member `vendor_b` is unknown'],
  ['my_vendor_b_thing', 'my_vendor_b_thing'],
])('a sentence names brands: %s', ([sentence, expected]) => {
  expect(withNames(sentence ?? '', nameOf)).toBe(expected);
});

test("a sentence shows its times in the reader's time zone, even in a nested sentence", () => {
  const at = '2026-11-26T14:53:29.950Z';
  expect(withTimes(`vivo did not take it at ${at}.`, { at, profile: '_default' }, clock)).toBe(
    'vivo did not take it at [14:53].',
  );
  expect(
    withTimes(`saved at ${at}`, { because: { code: 'staleDevice', params: { at } } }, clock),
  ).toBe('saved at [14:53]');
  // A time inside a condition is part of the condition.
  const clause = `{"createdAt":{"$gt":"${at}"}}`;
  expect(withTimes(`the condition ${clause} does not hold`, { clause }, clock)).toContain(clause);
});

describe('the preview of a text with variables', () => {
  const visibleMessage = (title: string, text: string): VisibleMessage => ({
    title,
    text,
    subtitle: '',
    image: '',
    badge: null,
    buttons: [],
    isSilent: title === '' && text === '',
  });
  const body = (alert: string, fallback = '') => ({
    data: { title: 'For you', alert, ios: { alert: { body: `iOS: ${alert}` } } },
    variables: { name: { field: 'nickname', default: fallback } },
  });
  const samples = (field: string) => (field === 'nickname' ? 'Ann' : undefined);

  test.for<[alert: string, fallback: string, sent: string, preview: string]>([
    ['Hello {{name}}!', '', 'Hello !', 'Hello Ann!'],
    ['Hello {{ name }}!', 'friend', 'Hello friend!', 'Hello Ann!'],
    ['{{name}}', '', '', 'Ann'],
    ['No variable', '', 'No variable', 'No variable'],
  ])('shows the value of a device: %s', ([alert, fallback, sent, preview]) => {
    const message = withSamples(visibleMessage('', sent), body(alert, fallback), samples);
    expect([message.text, message.isSilent]).toEqual([preview, false]);
  });

  test('also in a part for one kind of device, and in a translation', () => {
    const draft = { ...body('Hi {{name}}'), languages: { zh: { alert: '你好 {{name}}' } } };
    expect(withSamples(visibleMessage('', 'iOS: Hi '), draft, samples).text).toBe('iOS: Hi Ann');
    expect(withSamples(visibleMessage('', '你好 '), draft, samples).text).toBe('你好 Ann');
  });

  test('shows the default, or the name if no value is known', () => {
    const none = () => undefined;
    expect(
      withSamples(visibleMessage('', 'Hello friend'), body('Hello {{name}}', 'friend'), none).text,
    ).toBe('Hello friend');
    expect(withSamples(visibleMessage('', 'Hello '), body('Hello {{name}}'), none).text).toBe(
      'Hello {{name}}',
    );
  });
});

describe('the chart of a push', () => {
  const timeline = (sent: number[]) => ({
    from: '2026-11-26T14:00:00.000Z',
    stepMs: 1000,
    connectors: { apns: { sent, other: sent.map(() => 0) } },
  });
  const valuesOf = (sent: number[], hasEnded: boolean) =>
    linesOf(timeline(sent), hasEnded, (key) => key).series[0]?.values;

  test.for<[sent: number[], hasEnded: boolean, values: number[] | undefined]>([
    [[10, 20, 30], true, [0, 10, 20, 30, 0]],
    // The push is running: its last step is incomplete, and no point follows it.
    [[10, 20, 3], false, [0, 10, 20]],
    [[10], false, [0, 10]],
    [[10], true, [0, 10, 0]],
    [[], false, undefined],
  ])('%j, ended: %s', ([sent, hasEnded, values]) => {
    expect(valuesOf(sent, hasEnded)).toEqual(values);
    const { times } = linesOf(timeline(sent), hasEnded, (key) => key);
    expect(times).toHaveLength(values?.length ?? 0);
  });
});
