import { json, route } from '../route.ts';

export default [
  route({ method: 'GET', path: '/healthz', auth: 'none', handle: () => json({ status: 'ok' }) }),
  route({
    method: 'GET',
    path: '/readyz',
    auth: 'none',
    handle: async (_call, { health }) => {
      const status = await health.readiness();
      return json({ status }, { status: status === 'ready' ? 200 : 503 });
    },
  }),
  route({
    method: 'GET',
    path: '/metrics',
    auth: 'none',
    isRaw: true,
    handle: async ({ raw }, { health }) => {
      const { text, type } = await health.metrics(raw?.headers.authorization);
      return { body: text, type };
    },
  }),
];
