import { expect, test } from 'vitest';
import { describeExplanation, withWarnings } from '../../../ops/cli/commands/send/result.ts';

const warning = '"channel" is no member of a push and was ignored. Did you mean "channels"?';

test('warnings of an accepted push are at the top of the text, and in the document', () => {
  const report = { document: { objectId: 'x' }, text: 'Push x: done', isBad: false };
  expect(withWarnings(report, [warning])).toEqual({
    document: { objectId: 'x', warnings: [warning] },
    text: `Warning: ${warning}\nPush x: done`,
    isBad: false,
  });
  expect(withWarnings(report)).toBe(report);
});

test('warnings of a dry run are shown', () => {
  const explanation = {
    devices: 1,
    connectors: {},
    estimatedSeconds: null,
    plan: [],
    texts: { limits: [], pace: { code: 'paceAsked', params: { perSecond: 10 } }, warning: null },
    digest: 'x',
  };
  const unknown = { code: 'ignoredMeant', params: { member: 'channel', meant: 'channels' } };
  const texts = { ...explanation.texts, warnings: [unknown] };
  expect(describeExplanation({ ...explanation, texts }).text).toContain(`Warnings:\n  ${warning}`);
  expect(describeExplanation(explanation).text).not.toContain('Warnings');
});
