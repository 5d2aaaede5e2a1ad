import { z } from 'zod';
import type { Operator } from '../../../shared/domain/admin/operator.ts';
import { flowControl } from '../../../shared/domain/pushes/body.ts';
import { approvedPush } from '../../replies/admin/records.ts';
import { count } from '../../replies/common.ts';
import { pushRecord } from '../../replies/pushes.ts';
import { json, operatorBody, route, smallBody } from '../../route.ts';
import type { PushName } from '../../services/push/push-control.ts';

/**
 * Cancel, pause, resume and pace a push that is not done (protocol/admin-api.md#control-of-a-push); each returns the push record. A
 * sender controls the pushes of its own token.
 */
const pushPath = '/console/api/apps/:appId/notifications/:id';

const resumption = z.strictObject({ flow_control: flowControl });

const pace = z.strictObject({ flow_control: flowControl.unwrap() });

const pushOf = ({ params, operator }: { params: Record<string, string>; operator: Operator }): PushName => ({
  controller: operator,
  appId: params.appId ?? '',
  publicId: params.id ?? '',
});

export default [
  route({
    method: 'POST',
    path: `${pushPath}/cancel`,
    operation: 'cancelPush',
    summary: 'Cancels a push that is not done and returns its record.',
    auth: 'admin',
    role: 'sender',
    limit: smallBody,
    reply: pushRecord,
    refusals: ['objectNotFound', 'conflict'],
    handle: async (call, { pushControl }) => json(await pushControl.cancel(pushOf(call))),
  }),
  route({
    method: 'POST',
    path: `${pushPath}/pause`,
    operation: 'pausePush',
    summary: 'Pauses a push that is being sent and returns its record.',
    auth: 'admin',
    role: 'sender',
    limit: smallBody,
    reply: pushRecord,
    refusals: ['objectNotFound', 'conflict'],
    handle: async (call, { pushControl }) => json(await pushControl.pause(pushOf(call))),
  }),
  route({
    method: 'POST',
    path: `${pushPath}/resume`,
    operation: 'resumePush',
    summary:
      'Resumes a paused push, with another `flow_control` if the body has one, and returns its record.',
    auth: 'admin',
    role: 'sender',
    limit: operatorBody,
    body: resumption,
    reply: pushRecord,
    refusals: ['objectNotFound', 'conflict'],
    handle: async (call, { pushControl }) =>
      json(await pushControl.resume(pushOf(call), call.body.flow_control)),
  }),
  route({
    method: 'POST',
    path: `${pushPath}/approve`,
    operation: 'approvePush',
    summary:
      'Approves a push to many devices that another person or the app sent, and returns its record with what is still missing.',
    auth: 'admin',
    role: 'operator',
    limit: smallBody,
    reply: approvedPush,
    refusals: ['objectNotFound', 'conflict'],
    handle: async (call, { pushControl }) =>
      json(await pushControl.approve({ ...pushOf(call), controller: call.operator })),
  }),
  route({
    method: 'POST',
    path: `${pushPath}/delete-invalid`,
    operation: 'deleteInvalidDevices',
    summary:
      'Deletes the devices whose tokens a finished push found invalid, also those that it kept because most tokens of a profile were called invalid. Devices that were saved since stay.',
    auth: 'admin',
    role: 'operator',
    limit: smallBody,
    reply: z.strictObject({ deleted: count }),
    refusals: ['objectNotFound', 'conflict'],
    handle: async (call, { pushControl }) => json(await pushControl.deleteInvalid(pushOf(call))),
  }),
  route({
    method: 'POST',
    path: `${pushPath}/pace`,
    operation: 'pacePush',
    summary:
      'Changes the recipients per second of a push that is not done, null for no limit; returns its record.',
    auth: 'admin',
    role: 'sender',
    limit: operatorBody,
    isBodyRequired: true,
    body: pace,
    reply: pushRecord,
    refusals: ['objectNotFound', 'conflict'],
    handle: async (call, { pushControl }) =>
      json(await pushControl.pace(pushOf(call), call.body.flow_control)),
  }),
];
