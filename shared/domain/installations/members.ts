import { type ErrorName, refuse } from '../errors/errors.ts';
import { type Json, jsonBytesAtMost } from '../json.ts';
import { canonicalVendor, deviceTypes } from '../labels.ts';
import { isOperation, type Members } from '../objects/operations.ts';
import { type InstallationDraft, isAbsent, wireName } from './installation.ts';

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

/** Reads a member that is given. Throws a refusal with the name under which it was sent. */
type Reader<T> = (value: Json, name: string) => T;

const text =
  (form: RegExp, rule: string, error: ErrorName = 'incorrectType'): Reader<string> =>
  (value, name) => {
    if (typeof value === 'string' && form.test(value)) return value;
    throw refuse(error, `${name} must be ${rule}.`);
  };

const idRule = (maxLength: number): string => `a text of 1 to ${maxLength} characters without white space`;
const plainRule = 'a text of at most 255 characters without control characters';
const lastBadge = 2 ** 31 - 1;

const readers = {
  deviceType: (value, name) => {
    if (typeof value === 'string' && deviceTypes.includes(value)) return value;
    throw refuse('incorrectType', `${name} must be one of ${deviceTypes.join(', ')}.`);
  },
  deviceToken: (value, name) => {
    if (typeof value === 'string' && shortId.test(value)) return value;
    throw refuse('invalidDeviceToken', `Invalid device token. ${name} must be ${idRule(200)}.`);
  },
  installationId: text(shortId, idRule(200)),
  vendor: text(vendorText, 'a text of at most 64 letters, digits, _ and -'),
  registrationId: text(longId, idRule(512)),
  deviceProfile: text(profileName, 'a name of at most 64 letters, digits and _ that begins with a letter'),
  pgwTopic: text(plainText, plainRule),
  pgwTeamId: text(plainText, plainRule),
  channels: (value, name) => {
    if (!Array.isArray(value)) throw refuse('invalidChannel', `${name} must be a list of texts.`);
    return value.map((channel) => {
      if (typeof channel !== 'string' || channel.length > maxChannelLength || !channelName.test(channel))
        throw refuse('invalidChannel');
      return channel;
    });
  },
  valid: (value, name) => {
    if (typeof value === 'boolean') return value;
    throw refuse('incorrectType', `${name} must be true or false.`);
  },
  timeZone: text(plainText, plainRule),
  badge: (value, name) => {
    if (typeof value === 'number' && Number.isInteger(value) && Math.abs(value) <= lastBadge) return value;
    throw refuse('incorrectType', `${name} must be a whole number from -${lastBadge} to ${lastBadge}.`);
  },
} satisfies Record<string, Reader<Json>>;
type BuiltIn = keyof typeof readers;

const isBuiltIn = (name: string): name is BuiltIn => Object.hasOwn(readers, name);

/**
 * Checks the value that a body sets a member to: `neutral` is the name of the member, `name` the
 * one under which it was sent. An object is an attempted operator. Throws 111, 112 or 114.
 */
export function checkBuiltIn(neutral: string, value: unknown, name: string): void {
  if (!isBuiltIn(neutral) || value === undefined || value === null || value === '' || isOperation(value))
    return;
  readers[neutral](value as Json, name);
}

/**
 * Splits members into columns and custom fields. Throws 111 for a built-in member of the wrong type or form, 112
 * for channels, 114 for a device token, 116 over the size limits.
 */
export function draftOf(members: Members, hasWireNames: boolean): InstallationDraft {
  const get = <N extends BuiltIn>(name: N): ReturnType<(typeof readers)[N]> | null => {
    const value = members.get(name);
    if (isAbsent(value)) return null;
    return readers[name](value, hasWireNames ? wireName(name) : name) as ReturnType<(typeof readers)[N]>;
  };
  const vendorName = get('vendor');
  const draft = {
    deviceType: get('deviceType') ?? readers.deviceType(null, 'deviceType'),
    deviceToken: get('deviceToken'),
    installationId: get('installationId'),
    vendor: vendorName === null ? null : canonicalVendor(vendorName),
    vendorName,
    registrationId: get('registrationId'),
    deviceProfile: get('deviceProfile'),
    topic: get('pgwTopic'),
    teamId: get('pgwTeamId'),
    hasWireNames,
    channels: get('channels'),
    // The app opts out by storing false (protocol/installations.md#installation-fields).
    valid: get('valid') ?? true,
    timeZone: get('timeZone'),
    badge: get('badge'),
  };
  const custom: [string, Json][] = [];
  for (const member of members) if (!isBuiltIn(member[0])) custom.push(member);
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
