import { z } from 'zod';
import { connectorIds } from '../../../shared/domain/labels.ts';
import { outcomes } from '../../../shared/domain/outcome.ts';
import { component, count, meaning, remedy, timestamp } from '../common.ts';

export const seenProcess = component(
  'SeenProcess',
  z.strictObject({
    id: z.string(),
    kind: z.enum(['api', 'dispatcher']),
    host: z.string(),
    pid: z.int(),
    version: z.string(),
    threads: count.describe('Number of sending threads. 1 for an api process.'),
    connections: count.describe(
      'Connections of clients and devices. For a dispatcher, its HTTP/2 connections to gateways.',
    ),
    startedAt: timestamp,
    seenAt: timestamp,
  }),
);

export const doctorFinding = component(
  'DoctorFinding',
  z.strictObject({
    level: z.enum(['ok', 'warn', 'fail']),
    subject: z.string().describe('What the finding is about.'),
    code: z.string().describe('Stable code of the finding.'),
    params: z.record(z.string(), z.unknown()).describe('Values of its text.'),
  }),
);

const id = z.string().nullable();

export const waitingJob = component(
  'WaitingJob',
  z.strictObject({
    id: z.string(),
    state: z.enum(['created', 'retry', 'active']),
    tries: count,
    appId: id,
    pushId: id,
    batchId: id,
    messageId: id,
    createdAt: timestamp,
    startAfter: timestamp.describe('Time before which it does not start.'),
    startedAt: timestamp.nullable(),
  }),
);

export const freeze = component(
  'Freeze',
  z.strictObject({
    appId: id.describe('Null means the whole service.'),
    reason: z.string(),
    by: z.string().describe('Name of the operator.'),
    since: timestamp,
  }),
);

const cause = {
  connector: z.enum(connectorIds),
  outcome: z.enum(outcomes),
  status: z.int().describe('Status of the gateway. 0 if there was no reply.'),
  reason: z.string(),
  meaning,
};

export const pushFailure = component(
  'PushFailure',
  z.strictObject({
    objectId: z.string().nullable().describe('Id of the installation, even if it was deleted.'),
    ...cause,
    at: timestamp,
  }),
);

export const gatewayMessage = component(
  'GatewayMessage',
  z.strictObject({
    connector: z.enum(connectorIds),
    messageId: z.string().describe('Id that the gateway gave, for its support.'),
    devices: count.describe('Recipients of the message.'),
    at: timestamp,
  }),
);

export const failureGroup = component(
  'FailureGroup',
  z.strictObject({
    ...cause,
    n: count,
    remedy: remedy.describe('What can be done about it.'),
  }),
);

export const pushTimeline = component(
  'PushTimeline',
  z.strictObject({
    from: timestamp,
    stepMs: count,
    connectors: z.partialRecord(
      z.enum(connectorIds),
      z.strictObject({
        sent: z.array(count).describe('Recipients by step.'),
        other: z.array(count).describe('Recipients with another outcome.'),
      }),
    ),
  }),
);
