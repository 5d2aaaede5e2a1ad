import { z } from 'zod';
import { connectorIds } from '../../../shared/domain/labels.ts';
import { outcomes } from '../../../shared/domain/outcome.ts';
import { count, timestamp } from '../common.ts';
import { component } from '../component.ts';
import { meaning, remedy } from './meaning.ts';

const cause = {
  connector: z.enum(connectorIds),
  outcome: z.enum(outcomes),
  status: z.int().describe('Status of the gateway; 0 without an answer.'),
  reason: z.string(),
  meaning,
};

export const pushFailure = component(
  'PushFailure',
  z.strictObject({
    objectId: z.string().nullable().describe('Id of the installation, also of a deleted one.'),
    ...cause,
    at: timestamp,
  }),
);

export const gatewayMessage = component(
  'GatewayMessage',
  z.strictObject({
    connector: z.enum(connectorIds),
    messageId: z.string().describe('Id that the gateway gave, for questions to its support.'),
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
