import type { BreakerView } from '../../../shared/domain/breaker.ts';
import { json, noBody, route, smallBody } from '../../route.ts';

/** Circuit breakers (protocol/admin-api.md#breakers): seen over all dispatchers, forced for all of them. */
const base = '/console/api/breakers';

/** `lastFailure` is ours: why the gateway could not be asked last, null once it has answered again. */
const toPublicBreaker = ({
  id,
  connector,
  appId,
  profile,
  state,
  forced,
  since,
  lastFailure,
}: BreakerView) => ({
  id,
  connector,
  appId,
  profile,
  state,
  forced,
  since: since.toISOString(),
  lastFailure: lastFailure && { reason: lastFailure.reason, at: lastFailure.at.toISOString() },
});

/** `release` is ours: a breaker goes back to what the gateway shows. */
const forcing = { open: 'open', close: 'closed', release: null } as const;

const summaries = {
  open: 'Forces a circuit breaker open on every dispatcher: the gateway gets no requests until it is released.',
  close: 'Forces a circuit breaker closed on every dispatcher: requests go on whatever the gateway answers.',
  release: 'Ends what was forced: the breaker follows the answers of the gateway again.',
} as const;

const change = (verb: keyof typeof forcing) =>
  route({
    method: 'POST',
    path: `${base}/:id/${verb}`,
    summary: summaries[verb],
    auth: 'admin',
    limit: smallBody,
    handle: async (call, { breakers }) =>
      json(toPublicBreaker(await breakers.force(call.params.id ?? '', forcing[verb]))),
  });

export default [
  route({
    method: 'GET',
    path: base,
    summary: 'Lists the circuit breakers of all dispatchers with their state and last failure.',
    auth: 'admin',
    limit: noBody,
    handle: async (_call, { breakers }) => json({ results: (await breakers.list()).map(toPublicBreaker) }),
  }),
  change('open'),
  change('close'),
  change('release'),
];
