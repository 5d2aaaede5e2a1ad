import { devicesBody, queryBody } from '../../../shared/domain/pushes/body.ts';
import { pushBodyBytesBelow } from '../../../shared/domain/pushes/push.ts';
import { warningsIn } from '../../../shared/domain/texts/texts.ts';
import { acceptedPush } from '../../replies/pushes.ts';
import { ofPush } from '../../replies/refusals.ts';
import { parsedByService } from '../../requests/checked.ts';
import { json, route } from '../../route.ts';
import type { AcceptedPush } from '../../services/push/pushes.ts';

/** Limit of a call with ids: 500 ids of up to some 500 bytes each, and the message. */
const devicesBodyBytesBelow = 512 * 1024;

/** Returns the reply to an accepted push (protocol/push.md#push-call), with its warnings if there are any. */
const accepted = ({ objectId, createdAt, warnings }: AcceptedPush) =>
  json({ objectId, createdAt: createdAt.toISOString(), ...warningsIn('en', warnings) });

export default [
  route({
    method: 'POST',
    path: '/1.1/push',
    operation: 'sendPush',
    summary: 'Sends a push to all installations that match `where` and `channels`.',
    auth: 'push',
    limit: { rate: 'push', bodyBytesBelow: pushBodyBytesBelow, isObject: true },
    isBodyRequired: true,
    body: parsedByService(queryBody),
    reply: acceptedPush,
    refusals: [...ofPush],
    handle: async (call, { pushes }) => accepted(await pushes.send(call, call.body)),
  }),
  route({
    method: 'POST',
    path: '/1.1/push/devices',
    operation: 'sendPushToDevices',
    summary: 'Sends a push to up to 500 device ids.',
    auth: 'push',
    limit: { rate: 'push', bodyBytesBelow: devicesBodyBytesBelow, isObject: true },
    isBodyRequired: true,
    body: parsedByService(devicesBody),
    reply: acceptedPush,
    refusals: [...ofPush],
    handle: async (call, { pushes }) => accepted(await pushes.sendToDevices(call, call.body)),
  }),
];
