import { isJsonObject, type Json, type JsonObject } from '../../shared/domain/json.ts';

/**
 * What a `where` means, without SQL and without the compiler's own parts: the yardstick of the property
 * test. Documents and conditions are in canonical form; semantics in shared/query/README.md.
 */
export function matches(document: JsonObject, where: Json): boolean {
  if (Array.isArray(where)) return where.every((part) => matches(document, part));
  if (!isJsonObject(where)) throw new Error('a condition is a dictionary');
  return Object.entries(where).every(([name, test]) => {
    if (name === '$and') return asList(test).every((part) => matches(document, part));
    if (name === '$or') return asList(test).some((part) => matches(document, part));
    return holds(valuesAt(document, name.split('.')), test);
  });
}

function asList(value: Json): Json[] {
  if (!Array.isArray(value)) throw new Error('expected a list');
  return value;
}

/** All values at a path; arrays on the way stand for their members. */
function valuesAt(document: JsonObject, path: string[]): Json[] {
  let values: Json[] = [document];
  for (const name of path)
    values = values
      .flatMap((value) => (Array.isArray(value) ? value : [value]))
      .flatMap((value) => {
        const member = isJsonObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
        return member === undefined ? [] : [member];
      });
  return values;
}

function holds(values: Json[], test: Json): boolean {
  if (!isJsonObject(test) || !Object.keys(test).some((key) => key.startsWith('$')))
    return equals(values, test);
  return Object.entries(test).every(([name, operand]) => operator(values, name, operand, test));
}

function operator(values: Json[], name: string, operand: Json, test: JsonObject): boolean {
  switch (name) {
    case '$ne':
      return !equals(values, operand);
    case '$in':
      return asList(operand).some((item) => equals(values, item));
    case '$nin':
      return !asList(operand).some((item) => equals(values, item));
    case '$all':
      return asList(operand).length > 0 && asList(operand).every((item) => equals(values, item));
    case '$size':
      return values.some((value) => Array.isArray(value) && value.length === operand);
    case '$exists':
      return values.length > 0 === operand;
    case '$regex':
      return items(values).some((item) => typeof item === 'string' && regex(operand, test).test(item));
    case '$options':
      return true;
    default:
      return items(values).some((item) => compares(name, item, operand));
  }
}

function regex(pattern: Json, { $options }: JsonObject): RegExp {
  const quoted = String(pattern).replace(/\\Q([\s\S]*?)(\\E|$)/g, (_all, text: string) =>
    RegExp.escape(text),
  );
  return new RegExp(quoted, typeof $options === 'string' ? $options : '');
}

/** The values themselves and the members of arrays among them. */
const items = (values: Json[]): Json[] => values.flatMap((value) => (Array.isArray(value) ? value : [value]));

function equals(values: Json[], wanted: Json): boolean {
  if (wanted === null && values.length === 0) return true;
  return [...values, ...items(values)].some((value) => stable(value) === stable(wanted));
}

/** JSON text that does not depend on the order of members. */
function stable(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(stable).join()}]`;
  if (!isJsonObject(value)) return JSON.stringify(value);
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${stable(member)}`).join()}}`;
}

function compares(name: string, item: Json, operand: Json): boolean {
  const [a, b] = [rankable(item), rankable(operand)];
  if (!a || !b || a.type !== b.type) return false;
  const order =
    a.type === 'string' ? Buffer.compare(bytes(a.value), bytes(b.value)) : Number(a.value) - Number(b.value);
  if (name === '$lt') return order < 0;
  if (name === '$lte') return order <= 0;
  if (name === '$gt') return order > 0;
  if (name === '$gte') return order >= 0;
  throw new Error(`unknown operator ${name}`);
}

const bytes = (value: unknown): Buffer => Buffer.from(String(value));

function rankable(value: Json): { type: string; value: number | string | boolean } | undefined {
  if (typeof value === 'number' || typeof value === 'string' || typeof value === 'boolean')
    return { type: typeof value, value };
  if (isJsonObject(value) && value.__type === 'Date' && typeof value.iso === 'string')
    return { type: 'date', value: Date.parse(value.iso) };
  return undefined;
}
