import { z } from 'zod';
import { connectorIds } from '../../../shared/domain/labels.ts';
import { outcomes } from '../../../shared/domain/outcome.ts';
import { component, count, meaning, remedy, timestamp } from '../common.ts';

export const seenProcess = component(
  'SeenProcess',
  z.strictObject({
    id: z.string().describe('Id of the process.'),
    kind: z.enum(['api', 'dispatcher']).describe('Kind of the process.'),
    host: z.string().describe('Name of the machine.'),
    pid: z.int().describe('Id of the process on its machine.'),
    version: z.string().describe('Version of Carillon.'),
    threads: count.describe('Number of sending threads. 1 for an api process.'),
    connections: count.describe(
      'Connections of clients and devices. For a dispatcher, its HTTP/2 connections to gateways.',
    ),
    startedAt: timestamp.describe('Time of the start.'),
    seenAt: timestamp.describe('Time of its last heartbeat.'),
  }),
);

export const doctorFinding = component(
  'DoctorFinding',
  z.strictObject({
    level: z.enum(['ok', 'warn', 'fail']).describe('`ok`, a warning, or a failure.'),
    subject: z.string().describe('What the finding is about.'),
    code: z.string().describe('Stable code of the finding.'),
    params: z.record(z.string(), z.unknown()).describe('Values of its text.'),
  }),
);

const id = z.string().nullable();

export const waitingJob = component(
  'WaitingJob',
  z.strictObject({
    id: z.string().describe('Id of the job.'),
    state: z.enum(['created', 'retry', 'active']).describe('State of the job.'),
    tries: count.describe('Number of attempts so far.'),
    appId: id.describe('Id of the app. Null for a job of the service.'),
    pushId: id.describe('Internal id of the push. Null for other jobs.'),
    batchId: id.describe('Id of the batch. Null for other jobs.'),
    messageId: id.describe('Id of the mail or SMS. Null for other jobs.'),
    createdAt: timestamp.describe('Time of the creation.'),
    startAfter: timestamp.describe('Time before which it does not start.'),
    startedAt: timestamp.nullable().describe('Time of the last start. Null before.'),
  }),
);

export const freeze = component(
  'Freeze',
  z.strictObject({
    appId: id.describe('Null means the whole service.'),
    reason: z.string().describe('Reason that the operator gave.'),
    by: z.string().describe('Name of the operator.'),
    since: timestamp.describe('Start of the freeze.'),
  }),
);

const cause = {
  connector: z.enum(connectorIds).describe('Connector of the gateway.'),
  outcome: z.enum(outcomes).describe('Outcome of the recipient.'),
  status: z.int().describe('Status of the gateway. 0 if there was no reply.'),
  reason: z.string().describe('Reason, as the gateway or the service gave it.'),
  meaning,
};

export const pushFailure = component(
  'PushFailure',
  z.strictObject({
    objectId: z.string().nullable().describe('Id of the installation, even if it was deleted.'),
    ...cause,
    at: timestamp.describe('Time of the outcome.'),
  }),
);

export const gatewayMessage = component(
  'GatewayMessage',
  z.strictObject({
    connector: z.enum(connectorIds).describe('Connector of the gateway.'),
    messageId: z.string().describe('Id that the gateway gave, for its support.'),
    devices: count.describe('Recipients of the message.'),
    at: timestamp.describe('Time of the message.'),
  }),
);

export const failureGroup = component(
  'FailureGroup',
  z.strictObject({
    ...cause,
    n: count.describe('Number of recipients.'),
    remedy: remedy.describe('What can be done about it.'),
  }),
);

export const pushTimeline = component(
  'PushTimeline',
  z.strictObject({
    from: timestamp.describe('Start of the first step.'),
    stepMs: count.describe('Length of a step in ms.'),
    connectors: z
      .partialRecord(
        z.enum(connectorIds),
        z.strictObject({
          sent: z.array(count).describe('Recipients by step.'),
          other: z.array(count).describe('Recipients with another outcome.'),
        }),
      )
      .describe('Recipients by connector and step.'),
  }),
);
