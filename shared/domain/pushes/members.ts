import { refuse } from '../errors/errors.ts';
import type { JsonObject } from '../json.ts';

/**
 * Members without meaning in a push that existing clients send (protocol/push.md#push-call, 5.11): the Java SDK
 * copies every parameter of a query, the old push client of browsers its own configuration. Private members (`_…`)
 * are tolerated as well.
 */
const tolerated = new Set([
  'appId',
  'appKey',
  'className',
  'count',
  'deviceType',
  'include',
  'installationId',
  'keys',
  'limit',
  'order',
  'returnACL',
  'skip',
]);

/** Limit of warnings in a reply. */
const maxWarnings = 20;

/**
 * Returns a warning for each unknown member, except those that existing clients send. Throws 1 for an unknown member in
 * a push without a target: `channel` in place of `channels` would send it to all devices.
 */
export function unknownMemberWarnings(
  body: JsonObject,
  { known, hasTarget }: { known: ReadonlySet<string>; hasTarget: boolean },
): string[] {
  const unknown = Object.keys(body).filter(
    (name) => !known.has(name) && !tolerated.has(name) && !name.startsWith('_'),
  );
  const [first] = unknown;
  if (first !== undefined && !hasTarget)
    throw refuse('invalidParameter', `${warningText(first, { known })} ${noTargetHint}`);
  const warnings = unknown.slice(0, maxWarnings).map((name) => warningText(name, { known, isIgnored: true }));
  const more = unknown.length - warnings.length;
  return more > 0 ? [...warnings, `${more} more members are unknown and were ignored.`] : warnings;
}

const noTargetHint =
  'Without where, channels or cql a push goes to everybody: send "where": {} if that is meant.';

function warningText(
  name: string,
  { known, isIgnored = false }: { known: ReadonlySet<string>; isIgnored?: boolean },
): string {
  const shown = /^[A-Za-z][\w-]{0,63}$/.test(name) ? `"${name}"` : 'A member of the body';
  const meant = [...known].find((one) => plain(one) === plain(name));
  const hint = meant === undefined ? '' : ` Did you mean "${meant}"?`;
  return `${shown} is no member of a push${isIgnored ? ' and was ignored' : ''}.${hint}`;
}

/** Normalises a name, so that different spellings compare equal. */
const plain = (name: string): string => name.toLowerCase().replaceAll(/[_-]/g, '').replace(/s$/, '');
