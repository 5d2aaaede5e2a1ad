import type { Params } from './params.ts';

/** A member of a document in a jsonb column. */
export interface JsonMember {
  /** The jsonb column. */
  column: string;
  path: string[];
}

/** The path in PostgreSQL's path language: names are quoted as JSON, of which its texts are a superset. */
export const jsonPath = ({ path }: JsonMember): string =>
  `$${path.map((name) => `.${JSON.stringify(name)}`).join('')}`;

/** A row for each value there; with `[*]`, for each member of an array among them. */
export function valuesAt(member: JsonMember, params: Params, suffix: '' | '[*]'): string {
  return `jsonb_path_query(${member.column}, ${params.add(jsonPath(member) + suffix)}::jsonpath)`;
}

export const itemsAt = (member: JsonMember, params: Params): string => valuesAt(member, params, '[*]');
