import { z } from 'zod';
import { count, timestamp } from '../common.ts';
import { component } from '../component.ts';

export const seenProcess = component(
  'SeenProcess',
  z.strictObject({
    id: z.string(),
    kind: z.enum(['api', 'dispatcher']),
    host: z.string(),
    pid: z.int(),
    version: z.string(),
    threads: count.describe('Threads that send; 1 for an api process.'),
    connections: count.describe(
      'Connections of clients and devices, or of a dispatcher to gateways over HTTP/2.',
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
    startAfter: timestamp.describe('It is not taken before.'),
    startedAt: timestamp.nullable(),
  }),
);

export const freeze = component(
  'Freeze',
  z.strictObject({
    appId: id.describe('Null: the whole service.'),
    reason: z.string(),
    by: z.string().describe('Name of the operator.'),
    since: timestamp,
  }),
);
