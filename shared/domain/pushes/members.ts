import { refuse } from '../errors/errors.ts';
import type { JsonObject } from '../json.ts';
import { type Detail, detail } from '../texts/texts.ts';

/**
 * Members that existing clients send in a push although they have no effect there
 * (protocol/push.md#push-call, 5.11). The Java SDK sends all parameters of a query, and the old
 * push client for browsers sends its configuration. Private members (`_…`) are also accepted.
 */
const ignoredMembers = new Set([
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

/** Maximum number of warnings in a reply. */
const maxWarnings = 20;

/**
 * Returns a warning for each unknown member, except members that existing clients send. Throws
 * error 1 if a push without a target has an unknown member. For example, `channel` instead of
 * `channels` would otherwise send the push to all devices.
 */
export function unknownMemberWarnings(
  body: JsonObject,
  { known, hasTarget }: { known: ReadonlySet<string>; hasTarget: boolean },
): Detail[] {
  const unknown = Object.keys(body).filter(
    (name) => !known.has(name) && !ignoredMembers.has(name) && !name.startsWith('_'),
  );
  const [first] = unknown;
  if (first !== undefined && !hasTarget)
    throw refuse(
      'invalidParameter',
      unknownMember(first, known, ['unnamedAll', 'unknownAll', 'unknownMeantAll']),
    );
  const warnings = unknown
    .slice(0, maxWarnings)
    .map((name) => unknownMember(name, known, ['ignoredUnnamed', 'ignored', 'ignoredMeant']));
  const more = unknown.length - warnings.length;
  return more > 0 ? [...warnings, detail('ignoredMore', { n: more })] : warnings;
}

/** Normalises a name, so that different spellings are equal. */
const plain = (name: string): string =>
  name.toLowerCase().replaceAll(/[_-]/g, '').replace(/s$/, '');

type Codes = [unnamed: Detail['code'], named: Detail['code'], meant: Detail['code']];

/** Describes an unknown member. Its name is only shown if it looks like a name. */
function unknownMember(
  name: string,
  known: ReadonlySet<string>,
  [unnamed, named, misspelt]: Codes,
): Detail {
  const isShown = /^[A-Za-z][\w-]{0,63}$/.test(name);
  const meant = [...known].find((one) => plain(one) === plain(name));
  if (!isShown) return detail(unnamed);
  return meant === undefined
    ? detail(named, { member: name })
    : detail(misspelt, { member: name, meant });
}
