import { type ErrorName, refuse } from '../errors/errors.ts';
import { isJsonObject, type Json, jsonBytesAtMost } from '../json.ts';
import { canonicalVendor, deviceTypes } from '../labels.ts';
import { isOperation, type Members } from '../objects/operations.ts';
import { type InstallationDraft, isAbsent } from './installation.ts';

/**
 * Sizes: an installation is read for every push to it, so it stays far below the 16 MB that the public
 * service allows an object (protocol/objects.md#object-limits); the number of custom members is that of a class there.
 */
const maxBytes = 128 * 1024;
const maxFields = 300;
const maxChannelLength = 255;

/** Channel names; Chinese characters are allowed although the text of code 112 does not name them. */
const channelName = /^[A-Za-z0-9_=\-\p{Script=Han}]*$/u;
/**
 * Device identifier without white space and control characters; not limited to hex
 * (protocol/installations.md#installation-fields).
 */
const idText = (maxLength: number) => new RegExp(`^[^\\s\\p{Cc}]{1,${maxLength}}$`, 'u');
/** Limit of indexed columns: a PostgreSQL index entry holds some 2700 bytes. */
const shortId = idText(200);
const longId = idText(512);
const plainText = /^[^\p{Cc}]{0,255}$/u;
const vendorText = /^[A-Za-z0-9_-]{0,64}$/;
const profileName = /^([A-Za-z][A-Za-z0-9_]{0,63})?$/;

/** Errors of invalid values other than 111. */
const refusals = new Map<string, ErrorName>([
  ['deviceToken', 'invalidDeviceToken'],
  ['channels', 'invalidChannel'],
]);
const builtIns = new Set([
  'deviceType',
  'deviceToken',
  'installationId',
  'vendor',
  'registrationId',
  'deviceProfile',
  'pgwTopic',
  'pgwTeamId',
  'channels',
  'valid',
  'timeZone',
  'badge',
]);

/** Refuses an object as the value of a built-in member: it is an attempted operator. Throws 111, 112 or 114. */
export function refuseObject(name: string, value: unknown): void {
  if (builtIns.has(name) && isJsonObject(value) && !isOperation(value))
    throw refuse(refusals.get(name) ?? 'incorrectType');
}

/**
 * Splits members into columns and custom fields. Throws 111 for a built-in member of the wrong type or form, 112
 * for channels, 114 for a device token, 116 over the size limits.
 */
export function draftOf(members: Members, hasWireNames: boolean): InstallationDraft {
  const get = (name: string): Json | undefined => {
    const value = members.get(name);
    return isAbsent(value) ? undefined : value;
  };
  const text = (name: string, form: RegExp): string | null => textMember(name, get(name), form);
  const vendorName = text('vendor', vendorText);
  const draft = {
    deviceType: deviceType(get('deviceType')),
    deviceToken: text('deviceToken', shortId),
    installationId: text('installationId', shortId),
    vendor: vendorName === null ? null : canonicalVendor(vendorName),
    vendorName,
    registrationId: text('registrationId', longId),
    deviceProfile: text('deviceProfile', profileName),
    topic: text('pgwTopic', plainText),
    teamId: text('pgwTeamId', plainText),
    hasWireNames,
    channels: channels(get('channels')),
    valid: valid(get('valid')),
    timeZone: text('timeZone', plainText),
    badge: badge(get('badge')),
  };
  const custom: [string, Json][] = [];
  for (const member of members) if (!builtIns.has(member[0])) custom.push(member);
  if (custom.length > maxFields)
    throw refuse('tooLarge', `An installation has at most ${maxFields} members.`);
  const fields = Object.fromEntries(custom);
  if (isTooLarge([fields, draft.channels]))
    throw refuse('tooLarge', `An installation is at most ${maxBytes} bytes.`);
  return { ...draft, fields };
}

/** Returns the size of the members that clients choose freely, as JSON in UTF-8. */
export const memberBytes = ({ fields, channels }: Pick<InstallationDraft, 'fields' | 'channels'>): number =>
  Buffer.byteLength(JSON.stringify([fields, channels]));

const isTooLarge = (members: Json): boolean =>
  jsonBytesAtMost(members) > maxBytes && Buffer.byteLength(JSON.stringify(members)) > maxBytes;

function textMember(name: string, value: Json | undefined, form: RegExp): string | null {
  if (value === undefined) return null;
  if (typeof value === 'string' && form.test(value)) return value;
  const error = refusals.get(name);
  throw error ? refuse(error) : refuse('incorrectType', `${name} has a wrong type or form.`);
}

function deviceType(value: Json | undefined): string {
  if (typeof value === 'string' && deviceTypes.includes(value)) return value;
  throw refuse('incorrectType', `deviceType must be one of ${deviceTypes.join(', ')}.`);
}

function channels(value: Json | undefined): string[] | null {
  if (value === undefined) return null;
  if (!Array.isArray(value)) throw refuse('invalidChannel', 'channels must be an array of strings.');
  return value.map((name) => {
    if (typeof name !== 'string' || name.length > maxChannelLength || !channelName.test(name))
      throw refuse('invalidChannel');
    return name;
  });
}

/** True by default; the app opts out by storing false (protocol/installations.md#installation-fields). */
function valid(value: Json | undefined): boolean {
  if (value === undefined) return true;
  if (typeof value === 'boolean') return value;
  throw refuse('incorrectType', 'valid must be a boolean.');
}

function badge(value: Json | undefined): number | null {
  if (value === undefined) return null;
  if (typeof value === 'number' && Number.isInteger(value) && Math.abs(value) < 2 ** 31) return value;
  throw refuse('incorrectType', 'badge must be a whole number.');
}
