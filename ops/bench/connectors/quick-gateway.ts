/**
 * Gateways of a benchmark of connectors in a process of their own: one per connector, over real TLS, that answers each
 * request with the reply of a success and checks nothing. Started with an IPC channel, and asked for its counts by it.
 */
import { currentEnvironment } from '../../../shared/config/config.ts';
import type { ConnectorId } from '../../../shared/domain/labels.ts';
import { ClosingStack, closeOnSignals, notifySupervisor } from '../../../shared/process/lifecycle.ts';
import { createLogger } from '../../../shared/process/logging.ts';
import type { GatewayInstance } from '../../sandbox/all/instance.ts';
import { startGateways } from '../../sandbox/all/start.ts';
import { openCertificateAuthority } from '../../sandbox/kit/certificates.ts';
import { startQuickPeer } from '../http2/quick-peer.ts';
import { startQuickHttp } from './quick-http.ts';
import { fcmAnswer, quickReplyOf } from './quick-replies.ts';

process.title = 'carillon bench gateway';

/** Streams per connection, as these gateways announce them. */
const streams = new Map<ConnectorId, number>([
  ['apns', 1000],
  ['fcm', 100],
  ['vendor_g', 100],
]);

const log = createLogger({ level: currentEnvironment().LOG_LEVEL ?? 'warn', name: 'bench gateway' });
const stack = new ClosingStack(log);
closeOnSignals({ log, stack });
const authority = await openCertificateAuthority();
const certificate = await authority.issueServer();
/** Requests with a message, by connector. */
const requests: Partial<Record<ConnectorId, number>> = {};

function count(connector: ConnectorId): void {
  requests[connector] = (requests[connector] ?? 0) + 1;
}

/** Returns the credentials of a connector for its quick gateway. */
async function startQuick({ connector, credentials }: GatewayInstance) {
  const http = await startQuickHttp({
    certificate,
    replyOf: (path) => quickReplyOf(connector, path),
    onRequest: (path) => {
      if (quickReplyOf(connector, path)?.isSend) count(connector);
    },
  });
  stack.add(connector, () => http.close());
  const maxStreams = streams.get(connector);
  const trusted = { ...credentials, ca: authority.certificate, authEndpoint: http.url };
  if (maxStreams === undefined) return { connector, credentials: { ...trusted, endpoint: http.url } };
  const answer = connector === 'apns' ? {} : { answer: fcmAnswer() };
  const peer = await startQuickPeer({ maxStreams, authority, ...answer }, () => ({
    onRequest: () => count(connector),
  }));
  stack.add(`${connector} streams`, () => peer.close());
  return { connector, credentials: { ...trusted, endpoint: peer.url } };
}

// The strict gateways issue the credentials.
const sandbox = await startGateways();
await sandbox.close();
process.on('message', () => notifySupervisor({ requests }));
notifySupervisor({ profiles: await Promise.all(sandbox.instances.map(startQuick)) });
