import type { Access, Route } from '../route.ts';

/** Sentences that follow from a route's access. */

const callers: Record<Access, string> = {
  none: 'Needs no credentials.',
  login: 'Needs a token of the admin API or a login code in the body.',
  admin: 'Needs a token or a session of the admin API.',
  app: 'Needs the app key or the master key of the app.',
  push: 'Needs the master key. The app key is enough if `forbidClientPush` is off.',
  master: 'Needs the master key of the app.',
  scan: 'Needs the master key of the app. The app key is refused with code 1.',
};

const sessions = {
  optional: 'Uses the session token of a user if the call has one.',
  required: 'Needs the session token of a user, or the master key.',
} as const;

/**
 * Returns the description of a route's operation in `/openapi.json`. It states who may call it, its
 * limits of body and rate, whether it is audited, and whether a batch may contain it. Every
 * sentence follows from the declaration of the route.
 */
export function descriptionOf(route: Route): string {
  return [callerOf(route), ...limitsOf(route), ...effectsOf(route)].join(' ');
}

/** Returns sentences that state who may call a route. */
export function callerOf({ auth, role, session, paths, isPublic }: Route): string {
  if (paths.includes('/metrics')) return 'Needs `METRICS_TOKEN` if the service has one.';
  if (auth === 'none' && !isPublic) return 'Needs the secret that is part of the path.';
  const sentences = [
    callers[auth],
    ...(role === undefined ? [] : [`The lowest role that may call it is \`${role}\`.`]),
    ...(session === undefined ? [] : [sessions[session]]),
  ];
  return sentences.join(' ');
}

function limitsOf({ limit, role }: Route): string[] {
  const { bodyBytesBelow, rate, weight = 1 } = limit;
  const isWeighted = role !== undefined && weight > 1;
  return [
    ...(bodyBytesBelow === 0 ? [] : [`The body has at most ${bodyBytesBelow - 1} bytes.`]),
    ...(rate === 'push' ? ['Counts for the option `pushCallsPerMinute` of the app.'] : []),
    ...(isWeighted ? [`Counts as ${weight} calls for the limit of the token.`] : []),
  ];
}

function effectsOf({ method, role, changesNothing, isBatch, isBatchable }: Route): string[] {
  const isAudited = role !== undefined && method !== 'GET' && !changesNothing;
  return [
    ...(isAudited ? ['A change is recorded in the audit.'] : []),
    ...(isBatchable && !isBatch ? ['A batch may contain this call.'] : []),
  ];
}
