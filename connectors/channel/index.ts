import { z } from 'zod';
import type { JsonObject } from '../../shared/domain/json.ts';
import type { Connector } from '../contract/connector.ts';
import { ChannelSender } from './client.ts';
import { renderChannelContent } from './payload.ts';

/** Empty: devices of the device channel log in to this service. */
const credentials = z.strictObject({});

/**
 * Connector of the device channel (protocol/channel.md#delivery-on-the-channel): stores messages
 * that api processes deliver.
 */
export const channel: Connector<z.infer<typeof credentials>, JsonObject> = {
  id: 'channel',
  // Repeats need no collapse id: the message store skips recipients that have the message.
  can: { passThrough: true, badge: false, collapse: true },
  // One call stores a whole batch; the body of a push is under 4096 bytes, and the server adds some
  // members.
  limits: { recipientsPerRequest: 1000, bodyBytes: 8192 },
  tokenField: 'installationId',
  credentials,
  render: renderChannelContent,
  inspect: () => ({ kind: 'none', expiresAtMs: null, problems: [] }),
  open: (_credentials, context) => new ChannelSender(context),
};
