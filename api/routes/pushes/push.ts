import { z } from 'zod';
import { pushBodyBytesBelow } from '../../../shared/domain/pushes/push.ts';
import { json, route } from '../../route.ts';
import type { AcceptedPush } from '../../services/push/pushes.ts';

/** 500 ids of the longest form (some 500 bytes each) beside the message. */
const devicesBodyBytesBelow = 512 * 1024;

const dictionary = z.record(z.string(), z.json());

/** Body `objectId`, `createdAt` (protocol/push.md#push-call), and `warnings` where there are some; status 200 (protocol/push.md#push-call). */
const accepted = ({ objectId, createdAt, warnings }: AcceptedPush) =>
  json({ objectId, createdAt: createdAt.toISOString(), ...(warnings.length > 0 ? { warnings } : {}) });

export default [
  route({
    method: 'POST',
    path: '/1.1/push',
    summary: 'Sends a push to all installations that match `where` and `channels`.',
    auth: 'push',
    limit: { rate: 'push', bodyBytesBelow: pushBodyBytesBelow, isObject: true },
    isBodyNeeded: true,
    body: dictionary,
    handle: async (call, { pushes }) => accepted(await pushes.send(call, call.body)),
  }),
  route({
    method: 'POST',
    path: '/1.1/push/devices',
    summary: 'Sends a push to up to 500 device ids.',
    auth: 'push',
    limit: { rate: 'push', bodyBytesBelow: devicesBodyBytesBelow, isObject: true },
    isBodyNeeded: true,
    body: dictionary,
    handle: async (call, { pushes }) => accepted(await pushes.sendToDevices(call, call.body)),
  }),
];
