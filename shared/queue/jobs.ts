import { z } from 'zod';
import { type ConnectorId, connectorIds } from '../domain/labels.ts';
import { queueSchemaVersion } from './settings.ts';

/**
 * End of the last wait that somebody asked for (a pause, a freeze, quiet hours, a start at local time, an open breaker, the rate
 * of a gateway), in epoch ms: the time to the first send counts from it.
 */
const waitedUntilMs = z.number().optional();

/** Job payloads. They hold ids, times and flags only: no content, no device lists. */
const planData = z.object({
  appId: z.string(),
  pushId: z.number(),
  waitedUntilMs,
  /** The target has no condition, so it does not name one installation (`pointTarget`). Absent: not known. */
  hasNoWhere: z.boolean().optional(),
  /** Creates the jobs of batches that were parked during a pause, instead of planning. */
  isRelease: z.boolean().optional(),
});
const messageData = z.object({ appId: z.string(), messageId: z.number() });
const deliverData = z.object({
  appId: z.string(),
  pushId: z.number(),
  batchId: z.number(),
  waitedUntilMs,
});

export type PlanJob = z.infer<typeof planData>;
export type MessageJob = z.infer<typeof messageData>;
export type DeliverJob = z.infer<typeof deliverData>;

export interface JobKind<T> {
  queue: string;
  data: z.ZodType<T>;
  /** Returns the app of a job, if consumers share their permits between apps. */
  groupOf?(data: T): string;
}

/** Resolves the targets of one push into batches. */
export const planJob: JobKind<PlanJob> = { queue: 'plan', data: planData, groupOf: ({ appId }) => appId };

/** Sends one batch. One queue per connector: a bulkhead (develop/architecture.md#bulkheads). */
export function deliverJob(connector: ConnectorId): JobKind<DeliverJob> {
  return { queue: `deliver-${connector}`, data: deliverData };
}

/** Sends one message of the outbox through its provider. */
export const messageJob: JobKind<MessageJob> = { queue: 'message', data: messageData };

/** All queues. Only `migrate` creates them. */
export const queueNames = [
  planJob.queue,
  messageJob.queue,
  ...connectorIds.map((id) => deliverJob(id).queue),
];

/** What processes need of the queue before they start. */
export const queueNeeds = { schemaVersion: queueSchemaVersion, names: queueNames } as const;

/**
 * How the planning of a new push is sent, and one that continues: new ones come first, so that a small one is not delayed
 * (develop/architecture.md#fairness), and the consumer of the others does not look at the queue for every new push.
 */
export const freshPlan = { priority: 0 } as const;
export const continuedPlan = { priority: -1, wakeName: 'plan-continued' } as const;
