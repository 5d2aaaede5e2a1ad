import { z } from 'zod';
import { usageReport } from '../../replies/admin/apps.ts';
import { quotas } from '../../replies/admin/gateways.ts';
import { resultsOf } from '../../replies/common.ts';
import { json, noBody, route } from '../../route.ts';

const day = z.iso.date('expected a day as YYYY-MM-DD').optional();
const usageQuery = z
  .object({
    day: day.describe('One day; today when absent.'),
    from: day.describe('With `to`: days in place of one, at most 400.'),
    to: day,
  })
  .refine(({ from, to }) => (from === undefined) === (to === undefined), {
    path: ['from'],
    message: 'from and to belong together',
  });

/** Usage and fees of an app (protocol/admin-api.md#usage), and the quotas of its gateways (protocol/admin-api.md#quotas). */
export default [
  route({
    method: 'GET',
    path: '/console/api/apps/:appId/usage',
    operation: 'getUsage',
    summary: 'Returns what an app used on a day (UTC) or on several, and what it costs.',
    auth: 'admin',
    role: 'viewer',
    limit: noBody,
    query: usageQuery,
    reply: z.union([usageReport, resultsOf(usageReport)]),
    refusals: ['notFound'],
    handle: async ({ params, query }, { usage }) => {
      const { day: one, from, to } = query;
      const appId = params.appId ?? '';
      if (from === undefined || to === undefined) return json(await usage.report(appId, one));
      return json({ results: await usage.range(appId, { from, to }) });
    },
  }),
  route({
    method: 'GET',
    path: '/console/api/apps/:appId/quotas',
    operation: 'getQuotas',
    summary:
      'Returns what an app used of its gateways on a day in China, with a forecast of its scheduled pushes.',
    auth: 'admin',
    role: 'viewer',
    limit: noBody,
    query: z.object({ day: day.describe('Day in China; today when absent.') }),
    reply: quotas,
    refusals: ['notFound'],
    handle: async (call, services) =>
      json(await services.quotas.read(call.params.appId ?? '', call.query.day)),
  }),
];
