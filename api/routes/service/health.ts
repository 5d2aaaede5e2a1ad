import { processStatus } from '../../replies/server.ts';
import { json, noBody, route } from '../../route.ts';

export default [
  route({
    method: 'GET',
    path: '/healthz',
    operation: 'getHealth',
    summary: 'Tells that the process is running.',
    auth: 'none',
    limit: noBody,
    reply: processStatus,
    refusals: [],
    handle: () => json({ status: 'ok' }),
  }),
  route({
    method: 'GET',
    path: '/readyz',
    operation: 'getReadiness',
    summary: 'Tells whether the process can serve: 200 `ready`, 503 otherwise.',
    auth: 'none',
    limit: noBody,
    reply: { 200: processStatus, 503: processStatus },
    refusals: [],
    handle: async (_call, { health }) => {
      const status = await health.readiness();
      return json({ status }, { status: status === 'ready' ? 200 : 503 });
    },
  }),
  route({
    method: 'GET',
    path: '/metrics',
    operation: 'getMetrics',
    summary:
      'Returns the metrics for Prometheus; requires `METRICS_TOKEN`. Where that is not set, answers callers on the same machine only.',
    auth: 'none',
    limit: noBody,
    hasRawBody: true,
    reply: { 200: { contentType: 'text/plain' } },
    refusals: ['unauthorized', 'unavailable'],
    handle: async ({ raw }, { health }) => {
      const { text, type } = await health.metrics({ headers: {}, socketAddress: '', ...raw });
      return { body: text, type };
    },
  }),
];
