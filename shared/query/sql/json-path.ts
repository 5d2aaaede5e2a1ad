import type { Params } from './params.ts';

/** Member of a document in a jsonb column. */
export interface JsonMember {
  /** The jsonb column. */
  column: string;
  path: string[];
}

/** Returns the SQL/JSON path of a member. Names are quoted as JSON strings, a subset of the path language's strings. */
export const jsonPath = ({ path }: JsonMember): string =>
  `$${path.map((name) => `.${JSON.stringify(name)}`).join('')}`;

/** Compiles a set of rows: one per value of the member; with `[*]`, one per item of an array. */
export function valuesAt(member: JsonMember, params: Params, suffix: '' | '[*]'): string {
  return `jsonb_path_query(${member.column}, ${params.add(jsonPath(member) + suffix)}::jsonpath)`;
}

export const itemsAt = (member: JsonMember, params: Params): string => valuesAt(member, params, '[*]');
