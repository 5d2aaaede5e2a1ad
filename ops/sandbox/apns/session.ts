import type { ServerHttp2Session } from 'node:http2';
import { TLSSocket } from 'node:tls';
import { listedTopics } from '../kit/certificates.ts';
import type { Refusal, ValidToken } from './tokens.ts';

const shortestTokenLifeS = 20 * 60;
const tooManyUpdates: Refusal = { status: 429, reason: 'TooManyProviderTokenUpdates' };

/** State of one connection. */
export interface SessionState {
  session: ServerHttp2Session;
  /**
   * Topics of the client certificate, those of a list with a leading `=`; null without a trusted
   * certificate.
   */
  certificateTopics: string[] | null;
  /** Streams without a response so far. */
  open: number;
  limit: number;
  /** Last limit sent to the client, and whether its acknowledgement is pending. */
  sentLimit: number;
  isLimitPending: boolean;
  /** Last stream id of the GOAWAY sent; later streams are not processed. */
  lastId: number;
  token: ValidToken | undefined;
}

export function createSessionState(session: ServerHttp2Session, limit: number): SessionState {
  return {
    session,
    certificateTopics: certificateTopics(session),
    open: 0,
    limit,
    sentLimit: limit,
    isLimitPending: false,
    lastId: Number.POSITIVE_INFINITY,
    token: undefined,
  };
}

/**
 * Raises or lowers the connection's stream limit, as APNs does by SETTINGS (protocol/apns.md#connections). Sends one change
 * at a time: a change before the client's acknowledgement of the last one is sent after it.
 */
export function setLimit(state: SessionState, limit: number): void {
  state.limit = limit;
  if (state.sentLimit === limit || state.isLimitPending || state.session.destroyed) return;
  state.sentLimit = limit;
  state.isLimitPending = true;
  state.session.settings({ maxConcurrentStreams: limit }, () => {
    state.isLimitPending = false;
    setLimit(state, state.limit);
  });
}

/**
 * Records the connection's provider token. Refuses one that was not issued at least 20 minutes after the one before
 * (protocol/apns.md#provider-tokens): a client that renews too often, or that alternates between two.
 */
export function recordToken(state: Pick<SessionState, 'token'>, token: ValidToken): Refusal | undefined {
  const { token: last } = state;
  if (last?.authorization === token.authorization) return undefined;
  if (last && token.issuedAtS - last.issuedAtS < shortestTokenLifeS) return tooManyUpdates;
  state.token = token;
  return undefined;
}

/**
 * Returns the topics of a trusted client certificate: those that it lists, else the subject's UID,
 * the bundle id (protocol/apns.md#certificates).
 */
function certificateTopics(session: ServerHttp2Session): string[] | null {
  const { socket } = session;
  if (!(socket instanceof TLSSocket) || !socket.authorized) return null;
  const peer = socket.getPeerCertificate();
  const listed = listedTopics(peer.raw);
  if (listed) return listed.map((topic) => `=${topic}`);
  const subject: Record<string, unknown> = { ...peer.subject };
  return typeof subject.UID === 'string' ? [subject.UID] : null;
}
