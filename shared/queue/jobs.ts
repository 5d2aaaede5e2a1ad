import { z } from 'zod';
import { type ConnectorId, connectorIds } from '../domain/labels.ts';

/** What the processes say to each other through the queue. Ids only: no content, no device lists. */
const planData = z.object({
  appId: z.string(),
  pushId: z.number(),
  /** Not to plan, but to give what was held while the push was paused its jobs again. */
  isRelease: z.boolean().optional(),
});
const messageData = z.object({ appId: z.string(), messageId: z.number() });
const deliverData = z.object({ appId: z.string(), pushId: z.number(), batchId: z.number() });

export type PlanJob = z.infer<typeof planData>;
export type MessageJob = z.infer<typeof messageData>;
export type DeliverJob = z.infer<typeof deliverData>;

export interface JobKind<T> {
  queue: string;
  data: z.ZodType<T>;
}

/** Resolve the targets of one push into batches. */
export const planJob: JobKind<PlanJob> = { queue: 'plan', data: planData };

/** Send one batch. One queue per connector: a bulkhead (develop/architecture.md#bulkheads). */
export function deliverJob(connector: ConnectorId): JobKind<DeliverJob> {
  return { queue: `deliver-${connector}`, data: deliverData };
}

/** Hand one message of the outbox to its supplier. */
export const messageJob: JobKind<MessageJob> = { queue: 'message', data: messageData };

/** Every queue there is; created by `migrate`, never by a request. */
export const queueNames = [
  planJob.queue,
  messageJob.queue,
  ...connectorIds.map((id) => deliverJob(id).queue),
];

/**
 * Planning in turns: a push that is new goes before one that is being continued, so that a push to few does
 * not wait for the planning of one to millions (develop/architecture.md#fairness).
 */
export const planPriorities = { fresh: 0, continued: -1 } as const;
