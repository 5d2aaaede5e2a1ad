import { isRecord, type JsonRecord, type JsonValue } from './json-text.ts';

/** Members of a message that the console has names for, in the order in which it shows them. */
const namedParts = [
  'title',
  'subtitle',
  'alert',
  'image',
  'url',
  'buttons',
  'badge',
  'sound',
  'category',
  'thread-id',
  'collapse-id',
  'silent',
] as const;
export type PartName = (typeof namedParts)[number];

/** Member of a message. `name` is undefined if the console has no name for it. */
export interface MessagePart {
  name: PartName | undefined;
  /** Path of the member, such as `alert.loc-key`. */
  path: string;
  value: JsonValue;
}

/** Members of an `alert` object that are also members of the message, by their names there. */
const alertNames: Readonly<Record<string, PartName>> = {
  title: 'title',
  subtitle: 'subtitle',
  body: 'alert',
};

/**
 * Returns the members of a message, or of its part for one kind of device or one language. Named
 * members come first. An `alert` object is replaced by its members.
 */
export function messageParts(message: JsonRecord): MessagePart[] {
  const parts = Object.entries(message).flatMap(([member, value]) =>
    member === 'alert' && isRecord(value) ? alertParts(value) : [partOf(member, value)],
  );
  return parts.toSorted((a, b) => rankOf(a) - rankOf(b));
}

const alertParts = (alert: JsonRecord): MessagePart[] =>
  Object.entries(alert).map(([member, value]) => ({
    name: alertNames[member],
    path: `alert.${member}`,
    value,
  }));

const partOf = (member: string, value: JsonValue): MessagePart => ({
  name: namedParts.find((name) => name === member),
  path: member,
  value,
});

const rankOf = ({ name }: MessagePart): number =>
  name === undefined ? namedParts.length : namedParts.indexOf(name);
