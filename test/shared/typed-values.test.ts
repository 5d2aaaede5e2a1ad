import { expect, test } from 'vitest';
import { canonicalValue } from '../../shared/domain/objects/typed-values.ts';

const bytes = (base64: string) => canonicalValue({ __type: 'Bytes', base64 });

test.each([
  ['', ''],
  ['YWI=', 'YWI='],
  [' Y W\nI = ', 'YWI='],
  ['YQ==\n', 'YQ=='],
  ['-_-_', '+/+/'],
])('%j is a value of Bytes', (sent, base64) => {
  expect(bytes(sent)).toEqual({ __type: 'Bytes', base64 });
});

test.each(['!', 'YQ===', 'YQ= =', 'Y=Q', 'YQ= Q'])('%j is refused as Bytes', (sent) => {
  expect(() => bytes(sent)).toThrow('Malformed Bytes.');
});

// A pattern in which two parts matched blanks took twelve seconds.
test('many blanks are refused in linear time', { timeout: 5000 }, () => {
  expect(() => bytes(`${' '.repeat(120_000)}!`)).toThrow('Malformed Bytes.');
});
