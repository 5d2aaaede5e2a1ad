import { refuse } from '../errors/errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../json.ts';
import { dataKeyOwners } from '../labels.ts';
import { isMemberName } from '../objects/typed-values.ts';
import { detail } from '../texts/texts.ts';
import type { Translations } from './languages.ts';

/**
 * Variable in a text, which each recipient gets with its own value (protocol/push.md#variables).
 */
export type Variable = {
  /** Field of the installation. A dot selects a member of an object. */
  field: string;
  /** Value for installations without this field. */
  default: string;
};

/** Variables of a push by name. */
export type Variables = Readonly<Record<string, Variable>>;

export const maxVariables = 10;
/** Maximum length of a value in characters. The query in PostgreSQL cuts off longer values. */
export const maxValueChars = 100;
const maxFieldChars = 256;
const maxFieldDepth = 5;

const variableName = /^[A-Za-z][A-Za-z0-9_]{0,63}$/;
const innerName = /^[A-Za-z0-9_-]{1,128}$/;
/** Any text between double braces. It is a variable or a mistake. */
const placeholder = /\{\{([^{}]*)\}\}/g;

/** Columns of an installation that a text may contain, by field name. */
export const variableColumns: ReadonlyMap<string, string> = new Map([
  ['deviceType', 'device_type'],
  ['vendor', 'vendor_name'],
  ['timeZone', 'time_zone'],
  ['badge', 'badge'],
]);

/**
 * Fields that are not allowed, because they address a device, contain a secret, or have no text
 * form.
 */
const refusedFields = new Set([
  ...[
    'deviceToken',
    'installationId',
    'registrationId',
    'subscription',
    'objectId',
    'sessionToken',
    'password',
    'authData',
  ],
  ...['channels', 'valid', 'deviceProfile', 'pgwTopic', 'pgwTeamId', 'apnsTopic', 'apnsTeamId'],
  ...['createdAt', 'updatedAt', 'ACL'],
]);

/** Content that variables are checked against. */
interface Content {
  data: JsonObject;
  languages?: Translations;
}

/**
 * Checks the variables of a push body against its texts. Returns undefined without variables.
 * Throws error 1 with a text that names the variable.
 */
export function variablesOf(
  value: Variables | null | undefined,
  content: Content,
): Variables | undefined {
  const all = Object.entries(value ?? {});
  if (all.length === 0) return undefined;
  if (all.length > maxVariables)
    throw refuse('invalidParameter', detail('variablesMost', { most: maxVariables }));
  for (const [name, { field }] of all) {
    if (!variableName.test(name)) throw refuse('invalidParameter', detail('variableName'));
    checkField(name, field);
  }
  const variables = Object.fromEntries(all);
  checkUse(variables, content);
  return variables;
}

function checkField(name: string, field: string): void {
  const [first = '', ...inner] = field.split('.');
  const isForm =
    field.length <= maxFieldChars &&
    isMemberName(first) &&
    inner.length < maxFieldDepth &&
    inner.every((part) => innerName.test(part));
  if (!isForm) throw refuse('invalidParameter', detail('variableField', { name }));
  if (refusedFields.has(first) || (variableColumns.has(first) && inner.length > 0))
    throw refuse('invalidParameter', detail('variableRefused', { name, field }));
}

/** Throws if a text contains an unknown variable, or if no text contains a defined variable. */
function checkUse(variables: Variables, { data, languages = {} }: Content): void {
  const used = new Set<string>();
  const check = (text: string) => {
    for (const [whole, name = ''] of text.matchAll(placeholder)) {
      if (!Object.hasOwn(variables, name.trim()))
        throw refuse(
          'invalidParameter',
          detail('variableUnknown', { placeholder: whole.slice(0, 80) }),
        );
      used.add(name.trim());
    }
    return text;
  };
  for (const content of [data, ...Object.values(languages)]) mapTexts(content, check);
  const unused = Object.keys(variables).find((name) => !used.has(name));
  if (unused !== undefined)
    throw refuse('invalidParameter', detail('variableUnused', { name: unused }));
}

/** Values of one recipient by variable name. */
export type Values = ReadonlyMap<string, string>;

/** Returns the values of a device that has none of the fields. */
export const defaultValues = (variables: Variables): Values =>
  new Map(Object.entries(variables).map(([name, variable]) => [name, variable.default]));

/**
 * Returns content with the values inserted into its texts. Braces in a value are not replaced
 * again. A value cannot break out of its text, because texts are encoded as JSON afterwards.
 */
export const filled = (data: JsonObject, values: Values): JsonObject =>
  mapTexts(data, (text) =>
    text.replaceAll(placeholder, (whole, name: string) => values.get(name.trim()) ?? whole),
  );

/** The part of a push order that contains texts. */
interface Order extends Content {
  variables?: Variables;
}

/** Returns an order with the texts of a device that has none of the fields. */
export function filledWithDefaults<T extends Order>(order: T): T {
  const { data, languages, variables } = order;
  if (!variables) return order;
  const values = defaultValues(variables);
  const translations = Object.entries(languages ?? {}).map(([tag, one]) => [
    tag,
    filled(one, values),
  ]);
  return {
    ...order,
    data: filled(data, values),
    ...(languages ? { languages: Object.fromEntries(translations) } : {}),
  };
}

/**
 * Applies a function to the texts that people see: `alert` and `title`, also in `aps` and in the
 * objects for one type of device.
 */
function mapTexts(data: JsonObject, map: (text: string) => string): JsonObject {
  const members = Object.entries(data).map(([name, value]): [string, Json] => {
    if (name === 'alert' || name === 'title') return [name, mapDeep(value, map)];
    const isPart = (name === 'aps' || dataKeyOwners.has(name)) && isJsonObject(value);
    return [name, isPart ? mapTexts(value, map) : value];
  });
  return Object.fromEntries(members);
}

function mapDeep(value: Json, map: (text: string) => string): Json {
  if (typeof value === 'string') return map(value);
  if (Array.isArray(value)) return value.map((one) => mapDeep(one, map));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, mapDeep(one, map)]));
}

/**
 * Numbers of recipients by variable: `devices` counts all recipients, `fallback` the recipients
 * that get the default.
 */
export type VariableCounts = Readonly<Record<string, { devices: number; fallback: number }>>;

/** Returns the counts for a reply. */
export const replyVariables = (counts: VariableCounts): JsonObject[] =>
  Object.entries(counts).map(([name, count]) => ({ name, ...count }));
