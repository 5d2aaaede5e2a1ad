/** Checks of a gateway that send no message (protocol/admin-api.md#profiles). */
import { once } from 'node:events';
import { connect } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { type Hint, isUntrustedCertificate } from '../../shared/domain/reasons.ts';
import { guardedLookup, requireAllowedAddress } from '../../shared/http/outbound-addresses.ts';
import { failureCodeOf } from '../../shared/http/result.ts';
import { sharedSecureContext } from '../../shared/http/trust.ts';
import type { GatewayCheck } from '../contract/connector.ts';
import {
  connectTls as connectHttp2Tls,
  isCertificateRefusal,
  serverNameOf,
  targetOf,
} from '../http2/connect.ts';
import type { TransportOptions } from '../http2/transport.ts';
import { notSent, untrustedHint } from './response-rules.ts';

/**
 * Opens an HTTP/2 connection and closes it. It counts as open when the peer's SETTINGS have
 * arrived. `certificateHint` is the hint if the gateway refuses our certificate.
 */
export async function checkHttp2(
  options: TransportOptions,
  certificateHint: Hint,
): Promise<GatewayCheck> {
  const signal = AbortSignal.timeout(options.timing.connectMs);
  try {
    const { default: http2 } = await import('http2-wrapper');
    const socket = await connectHttp2Tls(targetOf(options), signal);
    const session = http2.connect(options.baseUrl, { createConnection: () => socket });
    try {
      await once(session, 'remoteSettings', { signal });
      return { ok: true, gave: 'connection' };
    } finally {
      // Without a listener, a late error of the destroyed session would be an uncaught error.
      session.on('error', () => undefined);
      session.destroy();
    }
  } catch (error) {
    return refusedConnection(failureCodeOf(error), certificateHint);
  }
}

/** Opens a connection and closes it. Used for gateways without a token call. */
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
    requireAllowedAddress(hostname);
  } catch (error) {
    return refusedConnection(failureCodeOf(error));
  }
  const trust = ca === undefined ? {} : { secureContext: sharedSecureContext(ca) };
  const socket = isTls
    ? connectTls({ ...target, ...trust, servername: serverNameOf(hostname), minVersion: 'TLSv1.2' })
    : connect(target);
  try {
    await once(socket, isTls ? 'secureConnect' : 'connect', {
      signal: AbortSignal.timeout(connectMs),
    });
    return { ok: true, gave: 'connection' };
  } catch (error) {
    return refusedConnection(failureCodeOf(error));
  } finally {
    // Without a listener, a late error of the destroyed socket would be an uncaught error.
    socket.on('error', () => undefined);
    socket.destroy();
  }
}

/**
 * Returns the result for a connection that failed with an error code. With `certificateHint`, an
 * alert means that the gateway refuses our certificate, as in the transport. The other codes refuse
 * the gateway's certificate.
 */
function refusedConnection(cause: string | undefined, certificateHint?: Hint): GatewayCheck {
  const refused = (reason: string, hint: Hint): GatewayCheck => ({
    ok: false,
    attempt: notSent({ reason, cause }, hint),
  });
  const code = cause ?? '';
  if (certificateHint !== undefined && isCertificateRefusal(code))
    return refused('certificate_refused', certificateHint);
  const hint = untrustedHint(cause);
  if (code === 'ADDRESS_REFUSED') return refused('address_refused', hint);
  return refused(isUntrustedCertificate(code) ? 'certificate_refused' : 'connect_failed', hint);
}
