import { z } from 'zod';
import { json, noBody, route } from '../../route.ts';

const usageQuery = z.object({ day: z.iso.date('expected a day as YYYY-MM-DD').optional() });

/** What an app used on a day and what that costs (protocol/admin-api.md#usage). */
export default [
  route({
    method: 'GET',
    path: '/console/api/apps/:appId/usage',
    summary: 'Returns what an app used on a day (UTC) and what it costs.',
    auth: 'admin',
    limit: noBody,
    query: usageQuery,
    handle: async (call, { usage }) => json(await usage.report(call.params.appId ?? '', call.query.day)),
  }),
];
