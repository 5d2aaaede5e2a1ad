import { anyObject } from '../../object-call.ts';
import { largestBody, route } from '../../route.ts';

/** Several calls in one (protocol/objects.md#batches): each is admitted, counted and refused as if it had come by itself. */

export default [
  route({
    method: 'POST',
    path: '/1.1/batch',
    summary:
      'Runs up to 1,000 calls (`requests`: a list of `method`, `path`, `body`) and returns the list of their replies.',
    auth: 'app',
    limit: largestBody,
    isNesting: true,
    body: anyObject,
    handle: async (call, { batches }) => ({ body: await batches.run(call) }),
  }),
  route({
    method: 'POST',
    path: '/1.1/batch/save',
    summary:
      'Saves objects that depend on each other: `requests` as of `/1.1/batch`, and objects inside them that are saved first.',
    auth: 'app',
    limit: largestBody,
    isNesting: true,
    body: anyObject,
    handle: async (call, { batches }) => ({ body: await batches.save(call) }),
  }),
];
