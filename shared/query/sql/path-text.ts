import type { Params } from './params.ts';

/** A member of a document in a jsonb column. */
export interface JsonPath {
  /** The jsonb column. */
  json: string;
  path: string[];
}

/** The path in PostgreSQL's path language: names are quoted as JSON, of which its texts are a superset. */
export const pathText = ({ path }: JsonPath): string =>
  `$${path.map((name) => `.${JSON.stringify(name)}`).join('')}`;

/** A row for each value there; with `[*]`, for each member of an array among them. */
export function valuesAt(at: JsonPath, params: Params, suffix: '' | '[*]'): string {
  return `jsonb_path_query(${at.json}, ${params.add(pathText(at) + suffix)}::jsonpath)`;
}

export const itemsAt = (at: JsonPath, params: Params): string => valuesAt(at, params, '[*]');
