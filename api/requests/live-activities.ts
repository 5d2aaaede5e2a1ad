import { z } from 'zod';
import { flagQuery } from '../../shared/domain/client-values.ts';
import { queryBody } from '../../shared/domain/pushes/body.ts';
import { checkStorable } from '../../shared/domain/pushes/live-activity-body.ts';
import type { Limit } from '../route.ts';
import type { ChannelScope } from '../services/push/broadcast-channels.ts';

/**
 * Body limit of the calls for Live Activities. The payload for APNs may have 5 KB, and `where` needs
 * more.
 */
export const activityLimit: Limit = {
  rate: 'push',
  bodyBytesBelow: 32 * 1024,
  isObject: true,
};

/** Query parameters of a call for broadcast channels. */
export const channelQuery = z.object({
  prod: z
    .enum(['dev', 'prod', ''], 'expected dev or prod')
    .optional()
    .describe('Environment of APNs. The default is `prod`.'),
  topic: z
    .string('expected one topic')
    .max(256)
    .optional()
    .describe('Bundle id. Needed if the profile lists several topics.'),
  pgw_team_id: z.string('expected one team id').max(256).optional().describe('APNs team id.'),
});

export const channelDeletionQuery = channelQuery.extend({
  dryRun: flagQuery.describe('If true, nothing is deleted. The reply says what would happen.'),
});

const { prod, topic, pgw_team_id } = queryBody.shape;

/** Body of the deletion of a channel. Each member may be in the query instead. */
export const channelDeletionBody = z
  .strictObject({
    prod,
    topic,
    pgw_team_id,
    dryRun: z
      .boolean('expected true or false')
      .nullish()
      .describe('If true, nothing is deleted. The reply says what would happen.'),
  })
  .check(checkStorable);

interface Given {
  prod?: 'dev' | 'prod' | '' | null | undefined;
  topic?: string | null | undefined;
  pgw_team_id?: string | null | undefined;
  apns_team_id?: string | null | undefined;
}

/** Returns the environment and bundle id of a call. Earlier arguments win. */
export const channelScope = (
  prodHeader: 'dev' | 'prod' | undefined,
  ...given: Given[]
): ChannelScope => ({
  prod: given.map((one) => one.prod).find(Boolean) || prodHeader || 'prod',
  topic: given.map((one) => one.topic).find(Boolean) ?? null,
  teamId: given.map((one) => one.pgw_team_id ?? one.apns_team_id).find(Boolean) ?? null,
});
