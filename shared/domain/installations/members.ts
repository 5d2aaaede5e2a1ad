import { refuse } from '../errors/errors.ts';
import { type Json, jsonBytesAtMost } from '../json.ts';
import { canonicalVendor, deviceTypes } from '../labels.ts';
import { isOperation, type Members } from '../objects/operations.ts';
import { type InstallationDraft, isAbsent, wireName } from './installation.ts';
import { parseSubscription, storedKeys, subscriptionDocument } from './subscription.ts';

/**
 * Maximum size of an installation. Each push to an installation reads it, so the limit is far below
 * the 16 MB that LeanCloud allows (protocol/objects.md#object-limits). The number of
 * custom members is limited as there.
 */
const maxBytes = 128 * 1024;
const maxFields = 300;
const maxChannelLength = 255;

/**
 * Channel names. Chinese characters are allowed, although the text of error 112 does not mention
 * them.
 */
const channelName = /^[A-Za-z0-9_=\-\p{Script=Han}]*$/u;

/**
 * Patterns of strings. Control characters are not allowed. Ids contain no white space and need not
 * be hexadecimal (protocol/installations.md#installation-fields). Ids in indexed columns are short,
 * because an index entry of PostgreSQL has at most about 2700 bytes.
 */
export const textForms = {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the characters that are refused
  shortId: /^[^\s\x00-\x1f\x7f-\x9f]{1,200}$/u,
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the characters that are refused
  longId: /^[^\s\x00-\x1f\x7f-\x9f]{1,512}$/u,
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the characters that are refused
  plain: /^[^\x00-\x1f\x7f-\x9f]{0,255}$/u,
  vendor: /^[A-Za-z0-9_-]{0,64}$/,
  profileName: /^([A-Za-z][A-Za-z0-9_]{0,63})?$/,
};

/** Descriptions of the patterns, which follow "must be". */
export const textRules = {
  shortId: idRule(200),
  longId: idRule(512),
  plain: 'a text of at most 255 characters without control characters',
  vendor: 'a text of at most 64 letters, digits, _ and -',
  profileName: 'a name of at most 64 letters, digits and _ that begins with a letter',
};

function idRule(maxLength: number): string {
  return `a text of 1 to ${maxLength} characters without white space`;
}

/** Largest badge number. Its negative is the smallest. */
export const lastBadge = 2 ** 31 - 1;

/**
 * Converts a member that was sent. Throws a refusal that contains the name under which it was sent.
 */
type Reader<T> = (value: Json, name: string) => T;

const text =
  (form: keyof typeof textForms): Reader<string> =>
  (value, name) => {
    if (typeof value === 'string' && textForms[form].test(value)) return value;
    throw refuse('incorrectType', `${name} must be ${textRules[form]}.`);
  };

const readers = {
  deviceType: (value, name) => {
    if (typeof value === 'string' && deviceTypes.includes(value)) return value;
    throw refuse('incorrectType', `${name} must be one of ${deviceTypes.join(', ')}.`);
  },
  deviceToken: (value, name) => {
    if (typeof value === 'string' && textForms.shortId.test(value)) return value;
    throw refuse(
      'invalidDeviceToken',
      `Invalid device token. ${name} must be ${textRules.shortId}.`,
    );
  },
  installationId: text('shortId'),
  vendor: text('vendor'),
  registrationId: text('longId'),
  subscription: (value, name) => subscriptionDocument(parseSubscription(value, name)),
  deviceProfile: text('profileName'),
  pgwTopic: text('plain'),
  pgwTeamId: text('plain'),
  channels: (value, name) => {
    if (!Array.isArray(value)) throw refuse('invalidChannel', `${name} must be a list of texts.`);
    return value.map((channel) => {
      if (
        typeof channel !== 'string' ||
        channel.length > maxChannelLength ||
        !channelName.test(channel)
      )
        throw refuse('invalidChannel');
      return channel;
    });
  },
  valid: (value, name) => {
    if (typeof value === 'boolean') return value;
    throw refuse('incorrectType', `${name} must be true or false.`);
  },
  timeZone: text('plain'),
  badge: (value, name) => {
    if (typeof value === 'number' && Number.isInteger(value) && Math.abs(value) <= lastBadge)
      return value;
    throw refuse(
      'incorrectType',
      `${name} must be a whole number from -${lastBadge} to ${lastBadge}.`,
    );
  },
} satisfies Record<string, Reader<Json>>;
type BuiltIn = keyof typeof readers;

const isBuiltIn = (name: string): name is BuiltIn => Object.hasOwn(readers, name);

/**
 * Checks the value that a body sets a member to. Returns the value to store: null for an empty text
 * of a built-in member. `neutral` is the name of the member, `name` the name under which it was
 * sent. Operations and the values of custom members are checked when they are applied; `isFixed`
 * refuses operations. Throws error 111, 112 or 114.
 */
export function checkedValue(
  neutral: string,
  value: Json,
  { name, isFixed }: { name: string; isFixed: boolean },
): Json {
  if (!isBuiltIn(neutral) || isAbsent(value) || (isOperation(value) && !isFixed)) return value;
  if (value === '') return null;
  readers[neutral](value, name);
  return value;
}

/**
 * Splits members into columns and custom fields. Throws error 111 if a built-in member has a wrong
 * type or form, 112 for channels, 114 for a device token, and 116 if a limit is exceeded.
 */
export function draftOf(members: Members, hasWireNames: boolean): InstallationDraft {
  const get = <N extends BuiltIn>(name: N): ReturnType<(typeof readers)[N]> | null => {
    const value = members.get(name);
    if (isAbsent(value)) return null;
    return readers[name](value, hasWireNames ? wireName(name) : name) as ReturnType<
      (typeof readers)[N]
    >;
  };
  const subscription =
    get('subscription') && parseSubscription(get('subscription'), 'subscription');
  const vendorName = get('vendor') ?? (subscription ? 'webpush' : null);
  const registrationId = get('registrationId');
  if (subscription && registrationId !== null)
    throw refuse('incorrectType', 'registrationId must not be given with subscription.');
  if (subscription && canonicalVendor(vendorName ?? '') !== 'webpush')
    throw refuse('incorrectType', 'vendor must be webpush for an installation with subscription.');
  const draft = {
    deviceType: get('deviceType') ?? readers.deviceType(null, 'deviceType'),
    deviceToken: get('deviceToken'),
    installationId: get('installationId'),
    vendor: vendorName === null ? null : canonicalVendor(vendorName),
    vendorName,
    registrationId: subscription?.endpoint ?? registrationId,
    subscriptionKeys: subscription && storedKeys(subscription),
    deviceProfile: get('deviceProfile'),
    topic: get('pgwTopic'),
    teamId: get('pgwTeamId'),
    hasWireNames,
    channels: get('channels'),
    // The app stores false to receive no pushes (protocol/installations.md#installation-fields).
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
export const memberBytes = ({
  fields,
  channels,
}: Pick<InstallationDraft, 'fields' | 'channels'>): number =>
  Buffer.byteLength(JSON.stringify([fields, channels]));

const isTooLarge = (members: Json): boolean =>
  jsonBytesAtMost(members) > maxBytes && Buffer.byteLength(JSON.stringify(members)) > maxBytes;
