import type { ConnectorId } from '../shared/domain/labels.ts';
import { apns } from './apns/index.ts';
import { channel } from './channel/index.ts';
import type { Connector } from './connector.ts';

/** Every connector that can send. Adding a vendor is one line here (design.md 3). */
export const connectors: ReadonlyMap<ConnectorId, Connector> = new Map<ConnectorId, Connector>([
  [apns.id, apns],
  [channel.id, channel],
]);
