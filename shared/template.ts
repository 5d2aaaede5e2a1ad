import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

/**
 * Loads handlebars when the first template is parsed. It needs 3 MB, and many services send no mail
 * and no SMS.
 */
const loadHandlebars = (): typeof import('handlebars') => require('handlebars');

/**
 * Template of a message. It supports the part of Handlebars that messages need
 * (protocol/codes.md#templates): variables, and `if` and `unless` with one variable. Loops, paths,
 * partials, decorators and other helpers are refused. So rendering takes time proportional to the
 * template's length, and a template can only read the values it gets. Only this file imports
 * handlebars.
 */
export interface Template {
  /** Variables of the template, including variables in conditions. */
  variables: ReadonlySet<string>;
  /**
   * Renders the template. Returns undefined if a shown variable has no value. A condition without a
   * value is false.
   */
  render(values: Readonly<Record<string, string>>): string | undefined;
}

/** Parsed template, or a hint about an invalid template. The hint quotes only names. */
export type TemplateResult = { ok: true; template: Template } | { ok: false; hint: string };

/** Options of a template. */
export interface TemplateOptions {
  /** `html` escapes values; `text` does not. */
  format: 'html' | 'text';
}

const variableName = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;
const conditions = new Set(['if', 'unless']);
/** Maximum nesting, which keeps templates readable and protects the parser's stack. */
const maxDepth = 8;

/**
 * Maximum number of tags. The parser takes more than linear time for open blocks; 11,000 blocks
 * take minutes.
 */
const maxTags = 200;
/** Maximum number of characters in a tag. The longest valid tag contains a condition and a name. */
const maxTagChars = 200;

/**
 * Parses a template. Checks number and length of its tags before the parser runs; callers must
 * limit the length of the text. In HTML, `{{{name}}}` and `{{&name}}` are refused, because they do
 * not escape the value.
 */
export function parseTemplate(text: string, { format }: TemplateOptions): TemplateResult {
  const tagHint = inspectTags(text);
  if (tagHint) return { ok: false, hint: tagHint };
  let program: hbs.AST.Program;
  try {
    program = loadHandlebars().parse(text);
  } catch {
    return { ok: false, hint: unreadable };
  }
  const found: Variables = { inserted: new Set(), conditional: new Set(), format };
  const hint = inspect(program.body, found, 0);
  if (hint) return { ok: false, hint };
  // The checked template contains only names and texts. It is compiled from its text, never from a
  // submitted syntax tree.
  const fill = loadHandlebars().compile<Record<string, string>>(text, {
    noEscape: format === 'text',
    knownHelpersOnly: true,
    knownHelpers: { if: true, unless: true },
  });
  return {
    ok: true,
    template: { variables: new Set([...found.inserted, ...found.conditional]), render },
  };

  function render(values: Readonly<Record<string, string>>): string | undefined {
    const own: Record<string, string> = Object.assign(Object.create(null), values);
    for (const name of found.inserted) if (own[name] === undefined) return undefined;
    return fill(own, { allowProtoPropertiesByDefault: false, allowProtoMethodsByDefault: false });
  }
}

interface Variables {
  inserted: Set<string>;
  conditional: Set<string>;
  format: TemplateOptions['format'];
}

/**
 * Finds tags that would take the parser a long time, in one pass over the text. A valid tag
 * contains no quote, bracket or parenthesis, so it ends at the first two closing braces, also for
 * the parser. Comments may be long.
 */
function inspectTags(text: string): string | undefined {
  const [, ...tags] = text.split('{{');
  if (tags.length > maxTags) return `A template may hold at most ${maxTags} pairs of braces.`;
  for (const tag of tags) {
    if (/^~?!/.test(tag)) continue;
    const end = tag.indexOf('}}');
    if (end === -1) return unreadable;
    if (end > maxTagChars || /["'[(]/.test(tag.slice(0, end))) return onlyVariables;
  }
  return undefined;
}

/**
 * Checks that all statements are supported. Returns a hint about the first unsupported statement.
 */
function inspect(
  statements: hbs.AST.Statement[],
  found: Variables,
  depth: number,
): string | undefined {
  if (depth > maxDepth) return `Conditions may be nested ${maxDepth} deep.`;
  for (const statement of statements) {
    const hint = inspectOne(statement, found, depth);
    if (hint) return hint;
  }
  return undefined;
}

function inspectOne(
  statement: hbs.AST.Statement,
  found: Variables,
  depth: number,
): string | undefined {
  if (isKind<hbs.AST.ContentStatement>(statement, 'ContentStatement')) return undefined;
  if (isKind<hbs.AST.CommentStatement>(statement, 'CommentStatement')) return undefined;
  if (isKind<hbs.AST.MustacheStatement>(statement, 'MustacheStatement')) {
    const name = variableOf(statement.path);
    if (name === undefined || statement.params.length > 0 || statement.hash) return onlyVariables;
    if (found.format === 'html' && !statement.escaped) return escapedOnly;
    found.inserted.add(name);
    return undefined;
  }
  if (isKind<hbs.AST.BlockStatement>(statement, 'BlockStatement'))
    return inspectBlock(statement, found, depth);
  return onlyVariables;
}

function inspectBlock(
  block: hbs.AST.BlockStatement,
  found: Variables,
  depth: number,
): string | undefined {
  const helper = nameOf(block.path);
  const [condition, ...more] = block.params;
  const name = condition && variableOf(condition);
  if (!helper || !conditions.has(helper) || !name || more.length > 0 || block.hash)
    return onlyVariables;
  if (block.program?.blockParams || block.inverse?.blockParams) return onlyVariables;
  found.conditional.add(name);
  return (
    inspect(block.program?.body ?? [], found, depth + 1) ??
    inspect(block.inverse?.body ?? [], found, depth + 1)
  );
}

const unreadable = 'The template cannot be read: check its braces.';

const escapedOnly =
  'HTML shows variables by {{two braces}}: three braces, or &, would not escape their values.';

const onlyVariables =
  'A template may hold variables and {{#if}} or {{#unless}} over one variable, and nothing else in braces.';

function isKind<N extends hbs.AST.Node>(node: hbs.AST.Node, type: N['type']): node is N {
  return node.type === type;
}

/**
 * Returns the name of a plain variable. Returns undefined for helpers, and for paths with dots, `@`
 * or `../`.
 */
function variableOf(expression: hbs.AST.Expression): string | undefined {
  const name = nameOf(expression);
  return name === undefined || loadHandlebars().helpers[name] ? undefined : name;
}

function nameOf(expression: hbs.AST.Node): string | undefined {
  if (!isKind<hbs.AST.PathExpression>(expression, 'PathExpression')) return undefined;
  const { original, parts, depth, data } = expression;
  const isPlain = parts.length === 1 && parts[0] === original && depth === 0 && !data;
  return isPlain && variableName.test(original) ? original : undefined;
}
