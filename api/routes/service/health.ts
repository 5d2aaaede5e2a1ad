import { json, noBody, route } from '../../route.ts';

export default [
  route({
    method: 'GET',
    path: '/healthz',
    summary: 'Says that the process lives.',
    auth: 'none',
    limit: noBody,
    handle: () => json({ status: 'ok' }),
  }),
  route({
    method: 'GET',
    path: '/readyz',
    summary: 'Says whether the process can serve: 200 `ready`, 503 otherwise.',
    auth: 'none',
    limit: noBody,
    handle: async (_call, { health }) => {
      const status = await health.readiness();
      return json({ status }, { status: status === 'ready' ? 200 : 503 });
    },
  }),
  route({
    method: 'GET',
    path: '/metrics',
    summary: 'Returns the metrics for Prometheus; asks for `METRICS_TOKEN` where it is set.',
    auth: 'none',
    limit: noBody,
    isRaw: true,
    handle: async ({ raw }, { health }) => {
      const { text, type } = await health.metrics(raw?.headers.authorization);
      return { body: text, type };
    },
  }),
];
