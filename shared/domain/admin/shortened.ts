import { isJsonObject, type Json, type JsonObject } from '../json.ts';

/** Members whose texts let their holder send to a device. */
const tokenMembers = new Set(['deviceToken', 'registrationId', 'installationId', 'deviceIds', 'device_ids']);

const shownLength = 6;

/** Returns the beginning of an identifier, enough to compare two. */
export const shortened = (text: string): string =>
  `${text.slice(0, Math.min(shownLength, text.length >> 1))}…`;

/** Shortens the tokens of devices in a document or a condition, at any depth. */
export function shortenTokens(document: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(document).map(([name, value]) => [name, shortenMember(value, tokenMembers.has(name))]),
  );
}

function shortenMember(value: Json, isToken: boolean): Json {
  if (typeof value === 'string') return isToken ? shortened(value) : value;
  if (Array.isArray(value)) return value.map((item) => shortenMember(item, isToken));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name,
      shortenMember(member, isToken || tokenMembers.has(name)),
    ]),
  );
}
