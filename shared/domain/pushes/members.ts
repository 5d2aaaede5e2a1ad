import { refuse } from '../errors/errors.ts';
import type { JsonObject } from '../json.ts';
import { type Detail, detail } from '../texts/texts.ts';

/**
 * Members without meaning in a push that existing clients send (protocol/push.md#push-call, 5.11):
 * the Java SDK copies every parameter of a query, the old push client of browsers its own
 * configuration. Private members (`_…`) are tolerated as well.
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
 * Returns a warning for each unknown member, except those that existing clients send. Throws 1 for
 * an unknown member in a push without a target: `channel` in place of `channels` would send it to
 * all devices.
 */
export function unknownMemberWarnings(
  body: JsonObject,
  { known, hasTarget }: { known: ReadonlySet<string>; hasTarget: boolean },
): Detail[] {
  const unknown = Object.keys(body).filter(
    (name) => !known.has(name) && !tolerated.has(name) && !name.startsWith('_'),
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

/** Normalises a name, so that different spellings compare equal. */
const plain = (name: string): string =>
  name.toLowerCase().replaceAll(/[_-]/g, '').replace(/s$/, '');

type Codes = [unnamed: Detail['code'], named: Detail['code'], meant: Detail['code']];

/** Describes an unknown member, by its name only if that looks like one. */
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
