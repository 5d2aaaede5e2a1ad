import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Refusal } from '../../../shared/domain/errors/errors.ts';
import { sqlPattern, translateRegex } from '../../../shared/query/parse/regex.ts';
import { openTestDatabase } from '../../support/database.ts';

const { db } = await openTestDatabase({ statementTimeoutMs: 5000 });

async function isMatch(text: string, pattern: string, options = ''): Promise<boolean> {
  const { rows } = await db.query<{ yes: boolean }>('SELECT $1::text ~ $2 AS yes', [
    text,
    sqlPattern(translateRegex(pattern, options)),
  ]);
  return rows[0]?.yes ?? false;
}

describe('$regex', () => {
  const cases: [string, string, string, boolean][] = [
    ['^\\Qa.b\\E', 'a.bc', '', true],
    ['^\\Qa.b\\E', 'axbc', '', false],
    ['\\Q$(\\E\\\\\\Q*\\E$', 'x$(\\*', '', true],
    ['\\Qopen', 'xopenx', '', true],
    ['FOO', 'foo', 'i', true],
    ['(?i)FOO', 'foo', '', true],
    ['^b$', 'a\nb\nc', '', false],
    ['^b$', 'a\nb\nc', 'm', true],
    ['a.b', 'a\nb', '', false],
    ['a.b', 'a\nb', 's', true],
    ['a[^x]b', 'a\nb', '', true],
    ['a b # comment\n c', 'abc', 'x', true],
    ['[a b]', ' ', 'x', true],
    ['\\bfoo\\b', 'a foo b', '', true],
    ['\\bfoo\\b', 'afoo', '', false],
    ['\\Boo', 'foo', '', true],
    ['\\d{3}-\\w+', '123-ab_', '', true],
    ['^\\w+$', '中文', '', false],
    ['[\\s\\S]', '\u3000', '', true],
    ['[\\d-]+', '1-2', '', true],
    ['[]a]', ']', '', true],
    ['[^]a]', 'b', '', true],
    ['[a-c.]', '.', '', true],
    ['[[:alpha:]]+', 'abc', '', true],
    ['[[a]', '[', '', true],
    ['\\x41\\u0042\\x{43}', 'ABC', '', true],
    ['\\x412', 'A2', '', true],
    ['(a|b)+c', 'ababc', '', true],
    ['a|', 'x', '', true],
    ['()', 'x', '', true],
    ['(?:)*a', 'a', '', true],
    ['(?=ab)a', 'ab', '', true],
    ['a(?!b)', 'ab', '', false],
    ['(?<=a)b', 'ab', '', true],
    ['(?<!a)b', 'ab', '', false],
    ['^(?=.*b)(?=.*a)[ab]+c*$', 'ab', '', true],
    ['(?:(?!x)a)b+', 'abb', '', true],
    ['[^\\W_]+', 'a_', '', true],
    ['a+?b', 'aab', '', true],
    ['a{2,3}', 'aa', '', true],
    ['a{,3}', 'a{,3}', '', true],
    ['a{x', 'a{x', '', true],
    ['***=a', '', '', false],
    ['\\tx\\/\\-', '\tx/-', '', true],
    ['😀{2}', '😀😀', '', true],
    ['\\A\\z', '', '', true],
    ['', 'anything', '', true],
  ];
  test.each(cases)('%j on %j with %j', async (pattern, text, options, expected) => {
    if (pattern.startsWith('***')) expect(() => translateRegex(pattern, options)).toThrow(Refusal);
    else expect(await isMatch(text, pattern, options)).toBe(expected);
  });

  const refused: [unknown, unknown][] = [
    ['(?:(?=a)b)*', ''],
    ['((?!x).)+', ''],
    ['(?:a(?:b|(?<=c)d)){2}', ''],
    ['(?:(?=a(?!b))c)?', ''],
    ['(', ''],
    [')', ''],
    ['a)(', ''],
    ['[', ''],
    ['[a', ''],
    ['[b-a]', ''],
    ['*a', ''],
    ['a**', ''],
    ['a++', ''],
    ['^*', ''],
    ['(?=a)*', ''],
    ['\\by{2}{3}', ''],
    ['(a)\\1', ''],
    ['\\p{L}', ''],
    ['\\', ''],
    ['\\k<a>', ''],
    ['(?<name>a)', ''],
    ['(?P<name>a)', ''],
    ['(?>a)', ''],
    ['(?#x)', ''],
    ['(?i:a)', ''],
    ['a(?i)b', ''],
    ['(*ACCEPT)', ''],
    ['a{256}', ''],
    ['a{3,2}', ''],
    ['((a{200}){200}){200}', ''],
    ['((.?){30}){30}', ''],
    ['(a|){250}', ''],
    ['((((((a{9}){9}){9}){9}){9}){9})', ''],
    ['('.repeat(60) + ')'.repeat(60), ''],
    ['a'.repeat(1001), ''],
    ['\0', ''],
    ['\\x{0}', ''],
    ['\ud800', ''],
    [5, ''],
    [{ $ne: 1 }, ''],
    ['a', 'g'],
    ['a', 5],
  ];
  test.each(refused)('refuses %j with options %j', (pattern, options) => {
    expect(() => translateRegex(pattern, options)).toThrow(expect.objectContaining({ code: 102 }));
  });

  test('every accepted pattern compiles in PostgreSQL and matches as in JavaScript', async () => {
    const part = fc.constantFrom(
      'a',
      'b',
      '.',
      '\\.',
      '[ab]',
      '[^a]',
      '[a-c]',
      '\\d',
      '\\w',
      '\\W',
      '\\s',
      '(a|b)',
      '(?:ab)',
      '^',
      '$',
      '|',
      '*',
      '+',
      '?',
      '{2}',
      '{1,2}',
      '(',
      ')',
      '[',
      ']',
      '\\',
      '\n',
      '-',
      'é',
      '{',
      '}',
      '\\b',
      '\\B',
      '(?=a)',
      '(?!b)',
    );
    const pattern = fc.array(part, { maxLength: 7 }).map((parts) => parts.join(''));
    const text = fc.string({
      unit: fc.constantFrom('a', 'b', 'c', '1', '.', '\n', 'é', ' ', '-', '{'),
      maxLength: 6,
    });
    const options = fc.constantFrom('', 'i', 'm', 's', 'ms');
    let compared = 0;
    await fc.assert(
      fc.asyncProperty(pattern, text, options, async (source, subject, flags) => {
        try {
          translateRegex(source, flags);
        } catch (error) {
          expect(error).toBeInstanceOf(Refusal);
          return;
        }
        const found = await isMatch(subject, source, flags);
        const js = inJavaScript(source, flags);
        if (!js) return;
        compared += 1;
        expect(found).toBe(js.test(subject));
      }),
      { numRuns: 3000 },
    );
    expect(compared).toBeGreaterThan(500);
  }, 60_000);
});

/**
 * Returns the pattern for JavaScript. Returns undefined for `[]`, `[^]` and escapes with another
 * meaning in JavaScript.
 */
function inJavaScript(source: string, flags: string): RegExp | undefined {
  if (/\[\^?\]|\\[aAbBeEQzZ]/.test(source)) return undefined;
  try {
    return new RegExp(source, flags);
  } catch {
    return undefined;
  }
}
