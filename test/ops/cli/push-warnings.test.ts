import { expect, test } from 'vitest';
import { describeExplanation } from '../../../ops/cli/commands/pushes/explanation.ts';
import { withWarnings } from '../../../ops/cli/commands/pushes/result.ts';

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
    texts: { limits: [], pace: { text: 'At once.', zh: '立即。' }, warning: null },
  };
  const texts = { ...explanation.texts, warnings: [{ text: warning, zh: '警告' }] };
  expect(describeExplanation({ ...explanation, texts }).text).toContain(`Warnings:\n  ${warning}`);
  expect(describeExplanation(explanation).text).not.toContain('Warnings');
});
