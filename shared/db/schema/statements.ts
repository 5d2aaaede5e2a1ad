/**
 * Splits SQL into its statements, without comments and with single blanks. Knows quotes, dollar quotes and comments;
 * that is enough for migrations, which are our own.
 */
export function splitStatements(sql: string): string[] {
  return parts(sql, ';');
}

/** Splits a list, such as the actions of an ALTER TABLE, at the commas outside of brackets. */
export function splitList(text: string): string[] {
  return parts(text, ',');
}

/** Tokens that hide a separator: comments, strings, quoted names, dollar-quoted bodies. */
const token = /--[^\n]*|\/\*[\s\S]*?\*\/|'(?:[^']|'')*'|"(?:[^"]|"")*"|(\$\w*\$)[\s\S]*?\1|[\s\S]/g;

function parts(sql: string, separator: ';' | ','): string[] {
  const found: string[] = [];
  let current = '';
  let depth = 0;
  for (const [text] of sql.matchAll(token)) {
    if (text === '(') depth += 1;
    if (text === ')') depth -= 1;
    if (text === separator && depth === 0) {
      found.push(current);
      current = '';
    } else current += /^(--|\/\*)/.test(text) ? ' ' : text;
  }
  return [...found, current].map((part) => part.replace(/\s+/g, ' ').trim()).filter((part) => part !== '');
}

/** Returns the part of a migration file that is run. */
export function upPart(file: string): string {
  return (file.split(/^\s*--\s*Down Migration/im)[0] ?? '').replace(/^\s*--\s*Up Migration/i, '');
}
