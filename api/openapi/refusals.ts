import type { ErrorName } from '../../shared/domain/errors/errors.ts';
import type { Access, Route } from '../route.ts';

/** Refusals that a call may get before or after its handler, by what its route declares. */

const byAccess: Record<Access, readonly ErrorName[]> = {
  none: [],
  login: ['unauthorized', 'forbidden', 'tooManyRequests', 'unsupportedMediaType'],
  admin: ['unauthorized', 'forbidden', 'tooManyRequests', 'unsupportedMediaType'],
  app: ['unauthorized', 'tooManyRequests'],
  push: ['unauthorized', 'masterKeyRequired', 'tooManyRequests'],
  master: ['unauthorized', 'masterKeyRequired', 'tooManyRequests'],
  scan: ['unauthorized', 'tooManyRequests'],
};

/** Refusals of calls that read the database: it is away, too slow, not set up, or refuses a value. */
const ofDatabase = ['incorrectType', 'timedOut', 'unavailable', 'misconfigured'] as const;

const ofBody = [
  'malformedJson',
  'payloadTooLarge',
  'requestTimeout',
  'unsupportedMediaType',
  'tooManyRequests',
  'unavailable',
] as const;

/** Returns every refusal that a route declares or that its access, query and body imply, sorted by name. */
export function refusalsOf(route: Route): ErrorName[] {
  const { auth, limit, session, query, body, refusals } = route;
  const names: ErrorName[] = [
    // A malformed URL, and one that is too long.
    'invalidParameter',
    'headersTooLarge',
    'internal',
    ...byAccess[auth],
    ...(auth === 'none' ? [] : ofDatabase),
    ...(limit.bodyBytesBelow > 0 ? ofBody : []),
    ...(limit.isObject ? (['tooLarge'] as const) : []),
    ...(query || body ? (['incorrectType'] as const) : []),
    ...(session === 'required' ? (['sessionNeeded'] as const) : []),
    ...refusals,
  ];
  return [...new Set(names)].sort();
}
