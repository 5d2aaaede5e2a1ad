import { describe, expect, test } from 'vitest';
import { requestOf } from '../../ops/client/client.ts';
import { isPlainPath, pathPart, reachableName } from '../../shared/domain/path.ts';

const unfit = [
  '',
  '.',
  '..',
  '/',
  'a/b',
  '../b',
  '\\',
  'a\\b',
  '%2f',
  '%2E%2e',
  '%252e',
  'x%5Cy',
  '\ud800',
];
const fit = [
  '...',
  '.a',
  'a.',
  'a..b',
  '50%',
  '%',
  '%zz',
  '100% off',
  'é',
  '新',
  '／',
  'a:b',
  '?',
  '#',
];

/** Returns the path of a console or CLI request with `text` as its last part. */
const clientPath = (text: string) =>
  requestOf('getAudience', { path: { appId: 'app', name: text } }).path;

describe('a builder of paths', () => {
  test.each(unfit)('throws for the part %j', (text) => {
    expect(() => pathPart(text)).toThrow('cannot be a part of a path');
    expect(() => clientPath(text)).toThrow('neither an id nor a name');
    // The browser resolves dots. The server refuses the rest.
    if (text.isWellFormed() && !['', '.', '..'].includes(text))
      expect(isPlainPath(`/apps/app/audiences/${encodeURIComponent(text)}`)).toBe(false);
  });

  test.each(fit)('encodes the part %j so that it is decoded unchanged', (text) => {
    const path = clientPath(text);
    expect(new URL(path, 'http://x').pathname).toBe(path);
    expect(decodeURIComponent(path.split('/').at(-1) ?? '')).toBe(text);
    expect(isPlainPath(path)).toBe(true);
    expect(path).toBe(`/apps/app/audiences/${pathPart(text)}`);
  });
});

test.each([...unfit.slice(1, -1), ...fit])(
  'a reachable name of %j fits into a path and stays the same',
  (text) => {
    const name = reachableName(text);
    expect(pathPart(name)).toBe(encodeURIComponent(name));
    expect(reachableName(name)).toBe(name);
    expect(name.normalize('NFKC')).toBe(text.normalize('NFKC'));
  },
);

test('a path with many levels of encoding is refused cheaply', () => {
  expect(isPlainPath(`/a/${'%25'.repeat(5000)}2e`)).toBe(true);
  expect(isPlainPath(`/a/%${'25'.repeat(8000)}2e`)).toBe(false);
});
