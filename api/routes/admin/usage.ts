import { z } from 'zod';
import { usageReport } from '../../replies/admin/apps.ts';
import { json, noBody, route } from '../../route.ts';

const usageQuery = z.object({ day: z.iso.date('expected a day as YYYY-MM-DD').optional() });

/** Usage and fees of an app on a day (protocol/admin-api.md#usage). */
export default [
  route({
    method: 'GET',
    path: '/console/api/apps/:appId/usage',
    operation: 'getUsage',
    summary: 'Returns what an app used on a day (UTC) and what it costs.',
    auth: 'admin',
    role: 'viewer',
    limit: noBody,
    query: usageQuery,
    reply: usageReport,
    refusals: ['notFound'],
    handle: async (call, { usage }) => json(await usage.report(call.params.appId ?? '', call.query.day)),
  }),
];
