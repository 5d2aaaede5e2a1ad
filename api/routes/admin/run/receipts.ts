import { z } from 'zod';
import { connectorIds } from '../../../../shared/domain/labels.ts';
import { failedReceipt, redrivenReceipts } from '../../../replies/admin/redrives.ts';
import { keysetPageOf } from '../../../replies/common.ts';
import { json, noBody, operatorBody, route } from '../../../route.ts';
import { pageOf, pageQuery } from '../../../services/operator/lists/page.ts';

/** Receipts of gateways that could not be processed (protocol/admin-api.md#failed-receipts). */
const base = '/console/api/apps/:appId/failed-receipts';

const connector = z
  .enum(connectorIds, `expected ${connectorIds.join(', ')}`)
  .optional()
  .describe('Only calls of this connector.');

const redriveBody = z.strictObject({
  connector,
  cursor: pageQuery.cursor.describe('`next` of the previous call.'),
});

const requestOf = ({ connector: of, cursor }: z.infer<typeof redriveBody>) => ({
  connector: of,
  cursor: cursor === undefined ? undefined : Number(cursor),
});

export default [
  route({
    method: 'GET',
    path: base,
    operation: 'listFailedReceipts',
    summary:
      'Lists receipt calls of gateways that could not be processed, newest first, each with ' +
      'the reason.',
    auth: 'admin',
    role: 'viewer',
    limit: noBody,
    query: z.object({ ...pageQuery, connector }),
    reply: keysetPageOf(failedReceipt),
    refusals: ['notFound'],
    handle: async ({ params, query }, { failedReceipts }) =>
      json(
        await failedReceipts.list(params.appId ?? '', {
          ...pageOf(query),
          connector: query.connector,
        }),
      ),
  }),
  route({
    method: 'POST',
    path: `${base}/redrive/explain`,
    operation: 'explainReceiptRedrive',
    summary:
      'Counts the calls that could be processed with the current credentials. Changes nothing.',
    auth: 'admin',
    role: 'operator',
    changesNothing: true,
    limit: operatorBody,
    body: redriveBody,
    reply: redrivenReceipts,
    refusals: ['notFound'],
    handle: async ({ params, body }, { failedReceipts }) =>
      json(await failedReceipts.redrive(params.appId ?? '', requestOf(body), { isDryRun: true })),
  }),
  route({
    method: 'POST',
    path: `${base}/redrive`,
    operation: 'redriveReceipts',
    summary:
      'Processes calls again with the current credentials, oldest first, at most 50. Calls ' +
      'that are refused again stay.',
    auth: 'admin',
    role: 'operator',
    limit: operatorBody,
    body: redriveBody,
    reply: redrivenReceipts,
    refusals: ['notFound', 'tooManyRequests'],
    handle: async ({ params, body }, { failedReceipts }) =>
      json(await failedReceipts.redrive(params.appId ?? '', requestOf(body), { isDryRun: false })),
  }),
];
