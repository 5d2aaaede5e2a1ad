import { z } from 'zod';
import { type ConnectorId, connectorIds } from '../domain/labels.ts';

/**
 * Settings of every queue. A job without a heartbeat for 10 s, the minimum that pg-boss allows, is
 * handed out again. Retries are unlimited, because each push has an expiry.
 */
export const queueSettings = {
  heartbeatSeconds: 10,
  expireInSeconds: 3600,
  retryLimit: 100_000,
  retryDelay: 1,
  retryBackoff: true,
  retryDelayMax: 30,
  retentionSeconds: 60 * 60 * 24 * 30,
  deleteAfterSeconds: 300,
} as const;

/** Version of pg-boss's tables that the installed pg-boss requires. */
export const queueSchemaVersion = 43;

/**
 * End of the last wait that somebody requested, in epoch ms: a pause, a freeze, quiet hours, a
 * start at local time, an open breaker or the rate of a gateway. The time to the first send counts
 * from here.
 */
const waitedUntilMs = z.number().optional();

/** Job payloads. They contain ids, times and flags, but no content and no device lists. */
const planData = z.object({ appId: z.string(), pushId: z.number(), waitedUntilMs });
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

/** A queue and the payload of its jobs. */
export interface JobKind<T> {
  queue: string;
  data: z.ZodType<T>;
  /** Returns the app of a job, if consumers share their slots between apps. */
  groupOf?(data: T): string;
}

/** Resolves the targets of one push into batches. */
export const planJob: JobKind<PlanJob> = {
  queue: 'plan',
  data: planData,
  groupOf: ({ appId }) => appId,
};

/** Sends one batch. One queue per connector: a bulkhead (develop/architecture.md#bulkheads). */
export function deliverJob(connector: ConnectorId): JobKind<DeliverJob> {
  return { queue: `deliver-${connector}`, data: deliverData };
}

/** Sends one message of the outbox through its provider. */
export const messageJob: JobKind<MessageJob> = {
  queue: 'message',
  data: messageData,
  groupOf: ({ appId }) => appId,
};

/** All queues. Only `migrate` creates them. */
export const queueNames = [
  planJob.queue,
  messageJob.queue,
  ...connectorIds.map((id) => deliverJob(id).queue),
];

/**
 * How the planning job of a new push is sent, and how the job of a continued planning is sent. New
 * pushes have a higher priority, so that a small push is not delayed
 * (develop/architecture.md#fairness). Each kind wakes only its own consumer.
 */
export const freshPlan = { priority: 0 } as const;
export const continuedPlan = { priority: -1, wakeName: 'plan-continued' } as const;
