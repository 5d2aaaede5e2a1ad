import type { Command } from 'commander';
import type { Input, Operation, Reply, Unchecked } from '../client/client.ts';
import { operations } from '../client/operations.ts';
import { app, flag, type Source, type Sources } from './arguments.ts';
import { command } from './command.ts';
import { confirm } from './input.ts';
import { type English, say, translated } from './language.ts';
import type { AddCommand, Report } from './report.ts';
import { chooseAppId, connect } from './service.ts';
import { type Cell, table } from './table.ts';

type Part<O extends Operation, M extends string> = M extends keyof Input<O>
  ? NonNullable<Input<O>[M]>
  : never;
type SourcesOf<P> = { [M in keyof P]?: Source<P[M]> };

/** Entry of a list that an operation returns. */
export type Item<O extends Operation> =
  Reply<O> extends { results: readonly (infer I)[] } ? I : never;

type CellOrNone = Cell | null | undefined;
type CellMember<T> = { [M in keyof T]-?: T[M] extends CellOrNone ? M : never }[keyof T];

/**
 * Columns of a table by heading. A column is the name of a member or a function of the entry. A
 * missing value is shown as `-`.
 */
export type Columns<T> = Readonly<Partial<Record<English, Column<T>>>>;
type Column<T> = CellMember<T> | ((item: T) => CellOrNone);

/** Parameters of the path and members of the body, as texts. */
export type Given = Readonly<Record<string, string>>;

/** Command that calls one operation of the admin API and shows its reply. */
export interface Row<O extends Operation> {
  operation: O;
  /** Example of its use, without `carillon`. By default, the words of the command. */
  example?: string;
  /** Parameters of the path. `appId` comes from the option `--app` unless it is listed here. */
  path?: SourcesOf<Part<O, 'path'>>;
  /** Members of the body, in the order of the arguments. */
  body?: SourcesOf<Part<O, 'body'>>;
  /** The whole body as one argument. */
  document?: Source<Unchecked>;
  query?: SourcesOf<Part<O, 'query'>>;
  /** Members of the query and the body that are the same in every call. */
  always?: { query?: Part<O, 'query'>; body?: Partial<Part<O, 'body'>> };
  /** Question that is asked before the call. `--yes` and `--json` skip the question. */
  confirm?: (given: Given) => string;
  /** Shows a list as a table. Shows `none` if the list is empty. */
  columns?: Columns<Item<O>>;
  none?: English;
  /** Formats the reply as text. Without `show` and `columns`, the text is the JSON of the reply. */
  show?: (reply: Reply<O>, given: Given) => string;
  /** True if the reply means a failure. The exit code is then 1. */
  isBad?: (reply: Reply<O>) => boolean;
}

const operationsOfCommands = new WeakMap<Command, Operation>();

/**
 * Returns the operation that a command calls. Returns undefined if the command was not declared
 * with `row`.
 */
export const operationOf = (added: Command): Operation | undefined =>
  operationsOfCommands.get(added);

/** Declares a command that calls one operation. `words` is its full name, such as `token list`. */
export function row<O extends Operation>(
  words: string,
  about: English,
  definition: Row<O>,
): AddCommand {
  const { example, operation } = definition;
  return command(words, about, {
    example,
    takes: takesOf(definition),
    setUp: (added) => void operationsOfCommands.set(added, operation),
    run: (values, { isJson }) => run(definition, values, { isSure: isJson || values.yes === true }),
  });
}

/** Prefixes the names of sources with the part of the request that they belong to. */
const named = (part: string, sources: object | undefined): Sources =>
  Object.fromEntries(sourcesIn(sources).map(([name, source]) => [`${part}.${name}`, source]));

const sourcesIn = (sources: object = {}): [string, Source<unknown>][] => Object.entries(sources);

const needsApp = <O extends Operation>({ operation, path = {} }: Row<O>): boolean =>
  operations[operation][1].includes('{appId}') && !('appId' in path);

/** Returns the arguments and options of a row, in order. */
function takesOf<O extends Operation>(definition: Row<O>): Sources {
  const { path, body, document, query, confirm: question } = definition;
  return {
    ...named('path', path),
    ...named('body', body),
    ...(document ? { document } : {}),
    ...named('query', query),
    ...(needsApp(definition) ? { app: app() } : {}),
    ...(question ? { yes: flag('--yes', 'do not ask') } : {}),
  };
}

/** Returns the given values of a part of the request. */
function partOf(part: string, values: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const own = Object.entries(values).filter(
    ([name, value]) => name.startsWith(`${part}.`) && value !== undefined,
  );
  return Object.fromEntries(own.map(([name, value]) => [name.slice(part.length + 1), value]));
}

/** Calls the operation of a row. */
async function run<O extends Operation>(
  definition: Row<O>,
  values: Readonly<Record<string, unknown>>,
  { isSure }: { isSure: boolean },
): Promise<Report> {
  const { operation, always = {}, confirm: question } = definition;
  const path = asTexts(partOf('path', values));
  const members = { ...always.body, ...partOf('body', values) };
  const given = { ...path, ...asTexts(members) };
  if (question && !isSure) await confirm(question(given));
  const service = await connect();
  if (needsApp(definition)) path.appId = await chooseAppId(service, asText(values.app));
  for (const [name, { resolve }] of sourcesIn(definition.path))
    if (resolve) path[name] = await resolve(service, path.appId ?? '', path[name] ?? '');
  const hasMembers = definition.body !== undefined || always.body !== undefined;
  const reply = await service.send(operation, {
    path,
    query: { ...always.query, ...partOf('query', values) },
    body: values.document ?? (hasMembers ? members : undefined),
  });
  return {
    document: reply,
    text: textOf(definition, reply, given),
    isBad: definition.isBad?.(reply) === true,
  };
}

const asText = (value: unknown): string | undefined =>
  value === undefined ? undefined : String(value);

const asTexts = (values: Record<string, unknown>): Record<string, string> =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, String(value)]));

function textOf<O extends Operation>(definition: Row<O>, reply: Reply<O>, given: Given): string {
  const { columns, none, show } = definition;
  if (show) return show(reply, given);
  if (!columns) return JSON.stringify(reply, null, 2);
  const { results, next } = reply as { results: Item<O>[]; next?: string | null };
  return listed(results, columns, { none, next });
}

/** Formats a list as a table, followed by the cursor of the next page. */
export function listed<T>(
  items: readonly T[],
  columns: Columns<T>,
  {
    none = 'Nothing was found.',
    next,
  }: { none?: English | undefined; next?: string | null | undefined } = {},
): string {
  if (items.length === 0) return translated(none);
  const values = Object.values(columns);
  const rows = items.map((item) => values.map((value) => cellOf(item, value)));
  const output = table(Object.keys(columns).map(translated), rows);
  return next ? `${output}\n\n${say('More: --cursor {next}', { next })}` : output;
}

function cellOf<T>(item: T, column: Column<T>): Cell {
  const value: unknown = typeof column === 'function' ? column(item) : item[column];
  if (value === undefined || value === null) return '-';
  return typeof value === 'number' ? value : String(value);
}
