import { z } from 'zod';
import type { JsonObject } from '../../shared/domain/json.ts';
import type { Connector } from '../contract/connector.ts';
import { ChannelSender } from './client.ts';
import { renderChannelContent } from './payload.ts';

/** Our own channel takes no credentials: the devices log in to us. */
const credentials = z.strictObject({});

/** Our own persistent channel (protocol/channel.md#delivery-on-the-channel): letters are stored, api processes deliver them. */
export const channel: Connector<z.infer<typeof credentials>, JsonObject> = {
  id: 'channel',
  // A repeat is hidden without a collapse id: the mailbox passes over whom it has a letter for.
  can: { passThrough: true, badge: false, collapse: true },
  // One deposit takes a whole batch; a call's body is under 4096 bytes, and the server adds some members.
  limits: { recipientsPerRequest: 1000, bodyBytes: 8192 },
  tokenField: 'installationId',
  credentials,
  render: renderChannelContent,
  inspect: () => ({ kind: 'none', expiresAtMs: null, problems: [] }),
  open: (_credentials, context) => new ChannelSender(context),
};
