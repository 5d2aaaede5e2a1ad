import { z } from 'zod';
import { isJsonObject, type JsonObject } from '../../shared/domain/json.ts';
import { largestBody, route } from '../route.ts';

/** Several calls in one (compat.md 3.5): each is admitted, counted and refused as if it had come by itself. */
const body = z.custom<JsonObject>(isJsonObject);

export default [
  route({
    method: 'POST',
    path: '/1.1/batch',
    auth: 'app',
    limit: largestBody,
    isNesting: true,
    body,
    handle: async (call, { batches }) => ({ body: await batches.run(call) }),
  }),
  route({
    method: 'POST',
    path: '/1.1/batch/save',
    auth: 'app',
    limit: largestBody,
    isNesting: true,
    body,
    handle: async (call, { batches }) => ({ body: await batches.save(call) }),
  }),
];
