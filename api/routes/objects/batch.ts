import { batchReply, batchSaveReply } from '../../replies/objects.ts';
import { ofSave } from '../../replies/refusals.ts';
import { batchBody, batchSaveBody } from '../../requests/batches.ts';
import { largestBody, route } from '../../route.ts';

/** Several calls in one (protocol/objects.md#batches); each is checked and counted like a request of its own. */

export default [
  route({
    method: 'POST',
    path: '/1.1/batch',
    operation: 'runBatch',
    summary:
      'Runs up to 1,000 calls (`requests`: a list of `method`, `path`, `body`) and returns the list of their replies.',
    auth: 'app',
    limit: largestBody,
    isBatch: true,
    body: batchBody,
    reply: batchReply,
    refusals: ['tooLarge'],
    handle: async (call, { batches }) => ({ body: await batches.run(call) }),
  }),
  route({
    method: 'POST',
    path: '/1.1/batch/save',
    operation: 'saveBatch',
    summary:
      'Saves objects that depend on each other: `requests` as of `/1.1/batch`, and objects inside them that are saved first.',
    auth: 'app',
    limit: largestBody,
    isBatch: true,
    body: batchSaveBody,
    reply: batchSaveReply,
    refusals: ofSave,
    handle: async (call, { batches }) => ({ body: await batches.save(call) }),
  }),
];
