import Handlebars from 'handlebars';

/**
 * Templates of messages (protocol/codes.md#templates: Handlebars), as much of the language as a message needs: variables, and
 * `if` and `unless` over variables. No loops, paths, partials, decorators or further helpers, so that a template
 * takes no more time than its length, and reaches nothing but the values it is given. The only home of handlebars.
 */
export interface Template {
  /** Variables that it names, conditions included. */
  variables: ReadonlySet<string>;
  /**
   * Fills the variables in. Undefined when one that is to be shown has no value; a condition without a value is
   * false.
   */
  render(values: Readonly<Record<string, string>>): string | undefined;
}

/** Why a text is no template, as a sentence that quotes only names. */
export type TemplateResult = { ok: true; template: Template } | { ok: false; hint: string };

export interface TemplateOptions {
  /** `html` escapes what two braces show; `text` shows it as it is. */
  format: 'html' | 'text';
}

const variableName = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;
const conditions = new Set(['if', 'unless']);
/** Deeper ones nobody can read, and the parser's stack is not ours to fill. */
const maxDepth = 8;

/** The parser's time grows faster than the number of open blocks: 11,000 of them take it minutes. */
const maxTags = 200;
/** Characters between two braces and the next two. The longest valid tag holds a name and a condition. */
const maxTagChars = 200;

/**
 * Reads a template. Bounds the number and the length of its tags before the parser sees it; the length of the whole
 * text is for the caller to bound. In HTML `{{{name}}}` and `{{&name}}` are refused, since they show a value unescaped.
 */
export function parseTemplate(text: string, { format }: TemplateOptions): TemplateResult {
  const tagProblem = inspectTags(text);
  if (tagProblem) return { ok: false, hint: tagProblem };
  let program: hbs.AST.Program;
  try {
    program = Handlebars.parse(text);
  } catch {
    return { ok: false, hint: unreadable };
  }
  const found: Found = { shown: new Set(), asked: new Set(), format };
  const problem = inspect(program.body, found, 0);
  if (problem) return { ok: false, hint: problem };
  // What passed holds names and texts only. It is compiled from the text, never from a tree that somebody sent.
  const fill = Handlebars.compile<Record<string, string>>(text, {
    noEscape: format === 'text',
    knownHelpersOnly: true,
    knownHelpers: { if: true, unless: true },
  });
  return { ok: true, template: { variables: new Set([...found.shown, ...found.asked]), render } };

  function render(values: Readonly<Record<string, string>>): string | undefined {
    const own: Record<string, string> = Object.assign(Object.create(null), values);
    for (const name of found.shown) if (own[name] === undefined) return undefined;
    return fill(own, { allowProtoPropertiesByDefault: false, allowProtoMethodsByDefault: false });
  }
}

interface Found {
  shown: Set<string>;
  asked: Set<string>;
  format: TemplateOptions['format'];
}

/**
 * Finds what would cost the parser much time, in one pass over the text. No valid tag holds a quote, a bracket or a
 * parenthesis, so each one ends at the first two closing braces, for the parser too. Comments may be long.
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

/** Lets through what is named above; gives a sentence for the first thing that is not. */
function inspect(statements: hbs.AST.Statement[], found: Found, depth: number): string | undefined {
  if (depth > maxDepth) return `Conditions may be nested ${maxDepth} deep.`;
  for (const statement of statements) {
    const problem = inspectOne(statement, found, depth);
    if (problem) return problem;
  }
  return undefined;
}

function inspectOne(statement: hbs.AST.Statement, found: Found, depth: number): string | undefined {
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

function inspectBlock(block: hbs.AST.BlockStatement, found: Found, depth: number): string | undefined {
  const helper = nameOf(block.path);
  const [condition, ...more] = block.params;
  const name = condition && variableOf(condition);
  if (!helper || !conditions.has(helper) || !name || more.length > 0 || block.hash) return onlyVariables;
  if (block.program?.blockParams || block.inverse?.blockParams) return onlyVariables;
  found.asked.add(name);
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

/** The name of a plain variable; a helper's name is none, nor is anything with dots, `@` or `../`. */
function variableOf(expression: hbs.AST.Expression): string | undefined {
  const name = nameOf(expression);
  return name === undefined || Handlebars.helpers[name] ? undefined : name;
}

function nameOf(expression: hbs.AST.Node): string | undefined {
  if (!isKind<hbs.AST.PathExpression>(expression, 'PathExpression')) return undefined;
  const { original, parts, depth, data } = expression;
  const isPlain = parts.length === 1 && parts[0] === original && depth === 0 && !data;
  return isPlain && variableName.test(original) ? original : undefined;
}
