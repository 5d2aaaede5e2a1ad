import { isObject, type SchemaField } from '../../../kit/form/schema.ts';
import { type Draft, textOf } from '../../../kit/form/values.ts';

interface DroppedFile {
  name: string;
  text: string;
}

/** Name of Apple's file of a key, which has the Key ID. */
const appleKeyName = /^AuthKey_([A-Za-z0-9]{10})\.p8$/;

/**
 * Returns the members that a file fills: a PEM file the key or the certificate, a JSON file the members that it names,
 * or as a whole the one member that takes an object (`serviceAccount`). Undefined for a file that fits none.
 */
export function draftOfFile(fields: readonly SchemaField[], { name, text }: DroppedFile): Draft | undefined {
  const members = jsonOf(text);
  if (!members) return pemDraft(fields, { name, text });
  const named = fields.filter((field) => members[field.name] !== undefined);
  if (named.length > 0)
    return Object.fromEntries(named.map((field) => [field.name, textOf(field, members[field.name])]));
  const whole = fields.find(({ kind }) => kind === 'json');
  return whole && { [whole.name]: JSON.stringify(members, null, 2) };
}

function pemDraft(fields: readonly SchemaField[], { name, text }: DroppedFile): Draft | undefined {
  const draft: Draft = {};
  const has = (member: string) => fields.some((field) => field.name === member);
  const blocks = text.match(/-----BEGIN ([A-Z ]+)-----[^-]+-----END \1-----/g) ?? [];
  for (const block of blocks) {
    const member = block.includes('PRIVATE KEY') ? 'privateKey' : 'certificate';
    if (has(member)) draft[member] = `${draft[member] ?? ''}${block}\n`;
  }
  const keyId = appleKeyName.exec(name)?.[1];
  if (keyId && has('keyId')) draft.keyId = keyId;
  return Object.keys(draft).length > 0 ? draft : undefined;
}

function jsonOf(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
