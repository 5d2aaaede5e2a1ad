import { z } from 'zod';
import { json, route } from '../route.ts';

export default [
  // `select` statements over users and installations (compat.md 3.4).
  route({
    method: 'GET',
    path: '/1.1/cloudQuery',
    auth: 'app',
    session: 'welcome',
    query: z.record(z.string(), z.unknown()),
    handle: async (call, { cloudQuery }) => json(await cloudQuery.run(call, call.query)),
  }),
];
