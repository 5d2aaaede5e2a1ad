import { Argument, type Command, Option } from 'commander';
import { systemClock } from '../../shared/clock.ts';
import type { JsonObject } from '../../shared/domain/json.ts';
import { type ConnectorId, connectorIds } from '../../shared/domain/labels.ts';
import { asUnchecked, type Unchecked } from '../client/client.ts';
import { dictionaryOrFile, wholeNumber } from './input.ts';
import type { English } from './language.ts';
import { anyTime, futureTime, pastTime } from './report.ts';
import type { ServiceClient } from './service.ts';

/** Argument or option of a command. Its value, if present, has type `T`. */
export interface Source<T> {
  declared: Argument | Option;
  /** Converts the text to the value. May read a file. */
  read?: (text: string) => Promise<T>;
  /** Replaces the value with the form that the service expects. */
  resolve?: (service: ServiceClient, appId: string, value: string) => Promise<string>;
  /** Never set. It exists only for type inference. */
  readonly value?: T;
}

/** Source that always has a value: a required argument or option, or an option with a default. */
export interface SureSource<T> extends Source<T> {
  isSure: true;
}

export type Sources = Readonly<Record<string, Source<unknown>>>;

/** Values of the sources, by their names. */
export type Values<S> = {
  [M in keyof S]: S[M] extends SureSource<infer T>
    ? T
    : S[M] extends Source<infer T>
      ? T | undefined
      : never;
};

/** Reads the values of a command's arguments and options, in the order of their declaration. */
export async function valuesOf<S extends Sources>(
  command: Command,
  sources: S,
): Promise<Values<S>> {
  const values: Record<string, unknown> = {};
  for (const [name, source] of Object.entries(sources))
    values[name] = await readValue(command, source);
  return values as Values<S>;
}

function readValue(command: Command, { declared, read }: Source<unknown>): unknown {
  const value: unknown =
    declared instanceof Argument
      ? command.processedArgs[command.registeredArguments.indexOf(declared)]
      : // A command and the one above it may have the same option, which the upper one takes.
        command.optsWithGlobals()[declared.attributeName()];
  return read && typeof value === 'string' ? read(value) : value;
}

/** Required argument: `<name>`. */
export const argument = (name: `<${string}>`, about: English | '' = ''): SureSource<string> => ({
  declared: new Argument(name, about),
  isSure: true,
});

/** Required argument. `parse` converts its text and may throw `UsageError`. */
export const parsedArgument = <T>(
  name: `<${string}>`,
  about: English,
  parse: (text: string) => T,
): SureSource<T> => ({ declared: new Argument(name, about).argParser(parse), isSure: true });

/** Required argument with a fixed set of values. */
export const oneOf = <const T extends string>(
  name: `<${string}>`,
  values: readonly T[],
): SureSource<T> => ({
  declared: new Argument(name).choices(values),
  isSure: true,
});

/** Optional argument: `[name]`. */
export const optional = (name: `[${string}]`, about: English | '' = ''): Source<string> => ({
  declared: new Argument(name, about),
});

/** Variadic argument: `<name...>` or `[name...]`. */
export const rest = (name: string, about: English | '' = ''): SureSource<string[]> => ({
  declared: new Argument(name, about),
  isSure: true,
});

/** Option with a text. */
export const text = (flags: string, about: English): Source<string> => ({
  declared: new Option(flags, about),
});

/** An option without a value. */
export const flag = (flags: string, about: English): Source<true> => ({
  declared: new Option(flags, about),
});

/** Option without a value on the command line. Its value is `value` if it is used. */
export const preset = <const T>(flags: string, about: English, value: T): Source<T> => ({
  declared: new Option(flags, about).preset(value),
});

/** Option with a fixed set of values. */
export const choice = <const T extends string>(
  flags: string,
  about: English,
  values: readonly T[],
): Source<T> => ({ declared: new Option(flags, about).choices(values) });

/** Option that takes several values of a fixed set. */
export const choices = <const T extends string>(
  flags: string,
  about: English,
  values: readonly T[],
): Source<T[]> => ({ declared: new Option(flags, about).choices(values) });

/**
 * Option whose text `parse` converts. `parse` gets the name of the option and may throw
 * `UsageError`.
 */
export function parsed<T>(
  flags: string,
  about: English,
  parse: (name: string, text: string) => T,
): Source<T> {
  const option = new Option(flags, about);
  return { declared: option.argParser((value) => parse(option.long ?? flags, value)) };
}

/** Option with a whole number. */
export const whole = (flags: string, about: English, min = 0): Source<number> =>
  parsed(flags, about, (name, value) => wholeNumber(name, value, min));

/** Option with a time. */
export const time = (flags: string, about: English): Source<string> =>
  parsed(flags, about, anyTime);

/** Option with a time in the future. */
export const timeAhead = (flags: string, about: English): Source<string> =>
  parsed(flags, about, (name, value) => futureTime(name, value, systemClock.now()));

/** Option with a time in the past. */
export const timeBefore = (flags: string, about: English): Source<string> =>
  parsed(flags, about, (name, value) => pastTime(name, value, systemClock.now()));

/** Option with several values. It may be repeated, and a value may be a comma-separated list. */
export const list = (flags: string, about: English): Source<string[]> => ({
  declared: new Option(flags, about).argParser((value: string, before: string[] = []) => [
    ...before,
    ...value.split(','),
  ]),
});

/** Option with a JSON object, or with the path of a file that contains a JSON object. */
export const json = (flags: string, about: English): Source<JsonObject> => ({
  declared: new Option(flags, about),
  read: dictionaryOrFile,
});

/** Makes an option required. */
export function required<T>(source: Source<T>): SureSource<T> {
  if (source.declared instanceof Option) source.declared.makeOptionMandatory();
  return { ...source, isSure: true };
}

/** Gives an option a default. */
export function withDefault<T>(source: Source<T>, value: T): SureSource<T> {
  source.declared.default(value);
  return { ...source, isSure: true };
}

/**
 * Argument with a JSON object, or with the path of a file that contains a JSON object. Only the
 * service checks its members.
 */
export const members = (name: `<${string}>`, about: English): SureSource<Unchecked> => ({
  declared: new Argument(name, about),
  read: async (value) => asUnchecked(await dictionaryOrFile(value)),
  isSure: true,
});

/** Argument that names a device: an objectId, an installationId, a token or a registration id. */
export const device = (name: `<${string}>`, about: English | '' = ''): SureSource<string> => ({
  ...argument(name, about),
  resolve: (service, appId, id) => service.deviceId(appId, id),
});

/** Option that names the application. */
export const app = () =>
  text('--app <appId>', 'the application; not needed when there is only one');

/** Option that limits a command to the failures of one connector. */
export const connector = (): Source<ConnectorId> =>
  choice('--connector <id>', 'only of this connector', connectorIds);

/** Options of a paged list. */
export const page = () => ({
  limit: whole('--limit <n>', 'largest number of results, at most 200', 1),
  cursor: text('--cursor <next>', '`next` of the page before'),
});
