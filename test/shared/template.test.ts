import { describe, expect, test } from 'vitest';
import { parseTemplate } from '../../shared/template.ts';

function template(text: string, format: 'html' | 'text' = 'text') {
  const result = parseTemplate(text, { format });
  if (!result.ok) throw new Error(result.hint);
  return result.template;
}

describe('a template', () => {
  test.each([
    '{{code',
    '{{#if code}}',
    '{{#each codes}}{{this}}{{/each}}',
    '{{#each this}}x{{/each}}',
    '{{#with code}}x{{/with}}',
    '{{lookup code "constructor"}}',
    '{{log code}}',
    '{{> partial}}',
    '{{#> layout}}x{{/layout}}',
    '{{#*inline "x"}}{{/inline}}',
    '{{* decorator}}',
    '{{constructor.constructor}}',
    '{{../code}}',
    '{{this}}',
    '{{.}}',
    '{{@root}}',
    '{{code.length}}',
    '{{[constructor]}}',
    '{{"code"}}',
    '{{code arg}}',
    '{{code key=1}}',
    '{{#code}}x{{/code}}',
    '{{^code}}x{{/code}}',
    '{{#if code as |x|}}x{{/if}}',
    '{{#if (lookup code "x")}}x{{/if}}',
    '{{#if code.length}}x{{/if}}',
    '{{#if 1}}x{{/if}}',
    '{{if}}',
    '{{helperMissing}}',
    `{{${'a'.repeat(65)}}}`,
    '{{#if a}}'.repeat(20) + '{{/if}}'.repeat(20),
  ])('contains only variables and conditions: %s is refused', (text) => {
    expect(parseTemplate(text, { format: 'text' })).toMatchObject({ ok: false });
  });

  test.each([
    ['unclosed blocks', '{{#if a}}'.repeat(11_000)],
    ['braces that nothing closes', '{{'.repeat(50_000)],
    ['subexpressions', `{{a ${'(a '.repeat(20_000)}${')'.repeat(20_000)}}}`],
    [
      'subexpressions behind a text in quotes',
      `{{a "}}" ${'(a '.repeat(20_000)}${')'.repeat(20_000)}}}`,
    ],
    ['arguments', `{{a ${'a '.repeat(40_000)}}}`],
    ['tags, one more than allowed', '{{a}}'.repeat(201)],
  ])('is refused before it is parsed: %s', (_what, text) => {
    // Parsing the first and the third text would take minutes, so the test would time out.
    expect(parseTemplate(text, { format: 'text' })).toMatchObject({ ok: false });
  });

  test('may contain 200 tags, and a comment of any length', () => {
    const text = `{{!-- ${'x'.repeat(5000)} --}}${'{{a}}'.repeat(199)}`;
    expect(template(text).render({ a: '1' })).toBe('1'.repeat(199));
  });

  test.each(['{{{a}}}', '{{&a}}', '{{#if a}}{{{a}}}{{/if}}', '{{~{a}~}}'])(
    'refuses unescaped output in HTML: %s is allowed in a text',
    (text) => {
      expect(parseTemplate(text, { format: 'html' })).toMatchObject({
        ok: false,
        hint: expect.stringContaining('escape'),
      });
      expect(template(text, 'text').render({ a: '<' })).toBe('<');
    },
  );

  test('renders variables, with two braces or three', () => {
    const { render, variables } = template(
      '{{{name}}}: {{code}}{{#if op}} ({{op}}){{else}}!{{/if}}',
    );
    expect(variables).toEqual(new Set(['name', 'code', 'op']));
    expect(render({ name: 'A & B', code: '123', op: '' })).toBe('A & B: 123!');
    expect(render({ name: 'x', code: '1', op: 'paying' })).toBe('x: 1 (paying)');
  });

  test('renders nothing if a shown variable has no value', () => {
    expect(template('{{a}}{{b}}').render({ a: '1' })).toBeUndefined();
    expect(template('{{#if a}}yes{{else}}no{{/if}}').render({})).toBe('no');
  });

  test.each(['constructor', 'toString', '__proto__', 'hasOwnProperty', 'valueOf'])(
    'does not show members of Object: %s',
    (name) => {
      const output = parseTemplate(`{{${name}}}`, { format: 'text' });
      expect(output.ok && output.template.render({})).toBeFalsy();
      const condition = parseTemplate(`{{#if ${name}}}yes{{else}}no{{/if}}`, { format: 'text' });
      if (condition.ok) expect(condition.template.render({})).toBe('no');
    },
  );

  test('treats values as texts', () => {
    expect(template('{{a}}').render({ a: '{{b}}{{#each}}' })).toBe('{{b}}{{#each}}');
  });

  test('escapes two braces for HTML', () => {
    const { render } = template('<p>{{a}}</p>', 'html');
    expect(render({ a: '<script>"&\'' })).toBe('<p>&lt;script&gt;&quot;&amp;&#x27;</p>');
  });
});
