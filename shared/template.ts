import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

/**
 * Loads handlebars with the first template: it takes 3 MB, and many services send no mail and no
 * SMS.
 */
const loadHandlebars = (): typeof import('handlebars') => require('handlebars');

/**
 * Template of a message: the part of Handlebars that messages need (protocol/codes.md#templates),
 * which is variables, and `if` and `unless` over variables. Without loops, paths, partials,
 * decorators and other helpers, a template takes time in proportion to its length and reads only
 * the values it gets. Only this file imports handlebars.
 */
export interface Template {
  /** Variables of the template, those in conditions included. */
  variables: ReadonlySet<string>;
  /**
   * Renders the template. Returns undefined when a shown variable has no value; a condition without
   * a value is false.
   */
  render(values: Readonly<Record<string, string>>): string | undefined;
}

/** Parsed template, or a hint about an invalid one, which quotes names only. */
export type TemplateResult = { ok: true; template: Template } | { ok: false; hint: string };

/** Options of a template. */
export interface TemplateOptions {
  /** `html` escapes values, `text` does not. */
  format: 'html' | 'text';
}

const variableName = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;
const conditions = new Set(['if', 'unless']);
/** Limit of nesting, for readability and the parser's stack. */
const maxDepth = 8;

/**
 * Limit of tags: the parser's time is superlinear in open blocks, and 11,000 of them take minutes.
 */
const maxTags = 200;
/** Limit of characters in a tag. The longest valid one contains a name and a condition. */
const maxTagChars = 200;

/**
 * Parses a template. Checks the number and length of its tags before the parser runs; callers limit
 * the length of the text. Refuses `{{{name}}}` and `{{&name}}` in HTML, since they show a value
 * unescaped.
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
  const found: Variables = { shown: new Set(), conditional: new Set(), format };
  const hint = inspect(program.body, found, 0);
  if (hint) return { ok: false, hint };
  // The inspected template contains names and texts only. It is compiled from the text, never from
  // a submitted tree.
  const fill = loadHandlebars().compile<Record<string, string>>(text, {
    noEscape: format === 'text',
    knownHelpersOnly: true,
    knownHelpers: { if: true, unless: true },
  });
  return {
    ok: true,
    template: { variables: new Set([...found.shown, ...found.conditional]), render },
  };

  function render(values: Readonly<Record<string, string>>): string | undefined {
    const own: Record<string, string> = Object.assign(Object.create(null), values);
    for (const name of found.shown) if (own[name] === undefined) return undefined;
    return fill(own, { allowProtoPropertiesByDefault: false, allowProtoMethodsByDefault: false });
  }
}

interface Variables {
  shown: Set<string>;
  conditional: Set<string>;
  format: TemplateOptions['format'];
}

/**
 * Finds tags that would take the parser long, in one pass over the text. A valid tag contains no
 * quote, bracket or parenthesis, so it ends at the first two closing braces, for the parser too.
 * Comments may be long.
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

/** Accepts the supported statements; returns a hint about the first other one. */
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
    found.shown.add(name);
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
 * Returns the name of a plain variable; undefined for helpers, and for paths with dots, `@` or
 * `../`.
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
