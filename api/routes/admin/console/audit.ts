import { z } from 'zod';
import { auditEntry } from '../../../replies/admin/access.ts';
import { keysetPageOf } from '../../../replies/common.ts';
import { json, noBody, route } from '../../../route.ts';
import { pageOf, pageQuery, timeQuery } from '../../../services/operator/lists/page-query.ts';

const text = z.string('expected one text').min(1).max(200).optional();

const auditQuery = z.object({
  ...pageQuery,
  app: text.describe('Id of an app.'),
  actor: text.describe('Name of a token; `admin` for CARILLON_ADMIN_TOKEN.'),
  action: text.describe('Such as `profile.put`, or `profile` for all changes of profiles.'),
  target: text.describe('Id or name of what was changed.'),
  from: timeQuery,
  to: timeQuery,
});

/** Audit of the admin API (protocol/admin-api.md#audit). */
export default [
  route({
    method: 'GET',
    path: '/console/api/audit',
    operation: 'listAudit',
    summary: 'Lists the changes that callers of the admin API made, newest first.',
    auth: 'admin',
    role: 'owner',
    limit: noBody,
    query: auditQuery,
    reply: keysetPageOf(auditEntry),
    refusals: [],
    handle: async ({ query }, { audit }) => json(await audit.list({ ...query, ...pageOf(query) })),
  }),
];
