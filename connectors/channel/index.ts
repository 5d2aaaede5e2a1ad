import { z } from 'zod';
import type { JsonObject } from '../../shared/domain/json.ts';
import type { Connector } from '../contract/connector.ts';
import { ChannelSender } from './client.ts';
import { renderChannelContent } from './payload.ts';

/** Empty, because devices of the device channel log in to this service. */
const credentials = z.strictObject({});

/**
 * Connector of the device channel (protocol/channel.md#delivery-on-the-channel). Stores messages,
 * which api processes then deliver.
 */
export const channel: Connector<z.infer<typeof credentials>, JsonObject> = {
  id: 'channel',
  // No collapse id is needed: the message store skips recipients that already have the message.
  can: { passThrough: true, badge: false, collapse: true },
  // One call stores a whole batch. The body of a push has less than 4096 bytes, and the server adds
  // some members.
  limits: { recipientsPerRequest: 1000, bodyBytes: 8192 },
  tokenField: 'installationId',
  credentials,
  render: renderChannelContent,
  inspect: () => ({ kind: 'none', expiresAtMs: null, problems: [] }),
  open: (_credentials, context) => new ChannelSender(context),
};
