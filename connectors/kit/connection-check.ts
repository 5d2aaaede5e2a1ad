/** Checks of a gateway that send nothing (protocol/admin-api.md#profiles). */
import { once } from 'node:events';
import { connect } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { failureCode, failureCodeOf } from '../../shared/http/connect-failure.ts';
import { guardedLookup, requireAllowedAddress } from '../../shared/http/outbound-addresses.ts';
import { sharedSecureContext } from '../../shared/http/trust.ts';
import type { GatewayCheck } from '../contract/connector.ts';
import { openTransport, type TransportChoice } from '../http2/open.ts';
import { serverNameOf } from '../http2/tls.ts';
import type { TransportOptions } from '../http2/transport.ts';
import { retry, unanswered, withCause } from './attempt-results.ts';

/** Opens and closes an HTTP/2 connection. It is open when the peer's SETTINGS arrived. */
export async function checkTransport(
  options: TransportOptions,
  choice: TransportChoice,
): Promise<GatewayCheck> {
  let isConnected = false;
  let detail = '';
  const transport = openTransport(
    {
      ...options,
      maxConnections: 1,
      onEvent: (fact) => {
        if (fact.event === 'connected') isConnected = true;
        else if (fact.event === 'connect_failed') detail = fact.detail;
      },
    },
    choice,
  );
  await transport.connect();
  await transport.close();
  return isConnected ? { ok: true, gave: 'connection' } : refusedConnection(failureCode(detail));
}

/** Opens and closes a connection of a gateway without a token call. */
export async function checkConnection(
  { baseUrl, ca }: { baseUrl: string; ca?: string | undefined },
  connectMs: number,
): Promise<GatewayCheck> {
  const { hostname, port, protocol } = new URL(baseUrl);
  const isTls = protocol === 'https:';
  const target = {
    host: hostname.replace(/^\[|\]$/g, ''),
    port: Number(port) || (isTls ? 443 : 80),
    lookup: guardedLookup,
  };
  try {
    requireAllowedAddress(hostname, target.port);
  } catch (error) {
    return refusedConnection(failureCodeOf(error));
  }
  const trust = ca === undefined ? {} : { secureContext: sharedSecureContext(ca) };
  const socket = isTls
    ? connectTls({ ...target, ...trust, servername: serverNameOf(hostname), minVersion: 'TLSv1.2' })
    : connect(target);
  try {
    await once(socket, isTls ? 'secureConnect' : 'connect', { signal: AbortSignal.timeout(connectMs) });
    return { ok: true, gave: 'connection' };
  } catch (error) {
    return refusedConnection(failureCodeOf(error));
  } finally {
    // Without a listener a late error of the destroyed socket would be uncaught.
    socket.on('error', () => undefined);
    socket.destroy();
  }
}

/** Returns the result of a connection that failed with this code. */
function refusedConnection(cause: string | undefined): GatewayCheck {
  if (cause === 'ADDRESS_REFUSED') {
    const failure = { kind: 'not_sent', reason: 'address_refused', seconds: 0, cause } as const;
    return { ok: false, attempt: unanswered(failure, false) };
  }
  if (cause !== undefined && /CERT|SELF_SIGNED|ALTNAME|VERIFY|ISSUER/.test(cause)) {
    const failure = { kind: 'not_sent', reason: 'certificate_refused', seconds: 0, cause } as const;
    return { ok: false, attempt: unanswered(failure, false) };
  }
  return { ok: false, attempt: withCause(retry(0, 'connect_failed'), cause) };
}
