import { breaker } from '../../replies/admin/pushes.ts';
import { resultsOf } from '../../replies/common.ts';
import { json, noBody, route, smallBody } from '../../route.ts';
import type { ShownBreaker } from '../../services/operator/breakers.ts';

/** Circuit breakers (protocol/admin-api.md#breakers) of all dispatchers. */
const base = '/console/api/breakers';

/** Returns a breaker as the admin API shows it. `lastFailure` is null once the gateway has answered again. */
const toPublicBreaker = ({
  id,
  connector,
  appId,
  profile,
  state,
  forced,
  since,
  nextProbeAt,
  lastFailure,
}: ShownBreaker) => ({
  id,
  connector,
  appId,
  profile,
  state,
  forced,
  since: since.toISOString(),
  nextProbeAt: nextProbeAt?.toISOString() ?? null,
  lastFailure: lastFailure && { ...lastFailure, at: lastFailure.at.toISOString() },
});

/** State that each verb forces; after `release` the breaker follows the gateway again. */
const forcing = { open: 'open', close: 'closed', release: null } as const;

const operations = { open: 'openBreaker', close: 'closeBreaker', release: 'releaseBreaker' } as const;

const summaries = {
  open: 'Forces a circuit breaker open on every dispatcher: the gateway gets no requests until it is released.',
  close: 'Forces a circuit breaker closed on every dispatcher: requests go on whatever the gateway answers.',
  release: 'Ends a forced state: the breaker follows the responses of the gateway again.',
} as const;

const change = (verb: keyof typeof forcing) =>
  route({
    method: 'POST',
    path: `${base}/:id/${verb}`,
    operation: operations[verb],
    summary: summaries[verb],
    auth: 'admin',
    role: 'operator',
    isFiltered: true,
    limit: smallBody,
    reply: breaker,
    refusals: ['notFound'],
    handle: async (call, { breakers }) =>
      json(toPublicBreaker(await breakers.force(call.operator, call.params.id ?? '', forcing[verb]))),
  });

export default [
  route({
    method: 'GET',
    path: base,
    operation: 'listBreakers',
    summary: 'Lists the circuit breakers of all dispatchers with their state and last failure.',
    auth: 'admin',
    role: 'viewer',
    isFiltered: true,
    limit: noBody,
    reply: resultsOf(breaker),
    refusals: [],
    handle: async ({ operator }, { breakers }) =>
      json({ results: (await breakers.list(operator)).map(toPublicBreaker) }),
  }),
  change('open'),
  change('close'),
  change('release'),
];
