import {
  constants,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
  type ServerStreamResponseOptions,
} from 'node:http2';
import { disrupt, type Misbehaviour } from '../kit/misbehaviour.ts';
import type { SessionState } from './session.ts';
import type { Refusal } from './tokens.ts';

/** One request with its whole body. */
export interface ReceivedRequest {
  state: SessionState;
  connection: number;
  stream: ServerHttp2Stream;
  headers: IncomingHttpHeaders;
  body: Buffer | null;
}

/** Any response but 200. */
export interface Answer extends Refusal {
  timestampMs?: number;
  retryAfter?: string;
  /** Body in place of the JSON with the reason. */
  body?: unknown;
}

// APNs sends no `date` header; the types of Node do not have the option.
const withoutDate: ServerStreamResponseOptions & { sendDate: boolean } = { sendDate: false };
const withoutBody = { ...withoutDate, endStream: true };

/** Answers as APNs does: 200 without a body, or JSON with the reason (protocol/apns.md#answers). */
export function respond({ state, stream, headers }: ReceivedRequest, answer: Answer | undefined): void {
  state.open -= 1;
  if (stream.destroyed || stream.closed) return;
  const id = headers['apns-id'] ?? 'EABEAE54-14A8-11E5-B60B-1697F925EC7B';
  if (answer === undefined) {
    stream.respond({ ':status': 200, 'apns-id': id }, withoutBody);
    return;
  }
  const { status, reason, timestampMs, retryAfter } = answer;
  const { body = timestampMs === undefined ? { reason } : { reason, timestamp: timestampMs } } = answer;
  stream.respond(
    { ':status': status, 'apns-id': id, ...(retryAfter === undefined ? {} : { 'retry-after': retryAfter }) },
    withoutDate,
  );
  stream.end(typeof body === 'string' ? body : JSON.stringify(body));
}

/** Delays the response, breaks it off, or sends none. */
export function disruptResponse(
  received: ReceivedRequest,
  misbehaviour: Misbehaviour,
  answer: Answer | undefined,
): void {
  const { state, stream } = received;
  if (misbehaviour.kind !== 'slow')
    stream.once('close', () => {
      state.open -= 1;
    });
  disrupt(misbehaviour, {
    send: () => respond(received, answer),
    reset: (code = constants.NGHTTP2_INTERNAL_ERROR) => stream.close(code),
    disconnect: () => state.session.socket.destroy(),
  });
}

/** Returns the debug data of a GOAWAY, where APNs puts the reason (protocol/apns.md#answers). */
export function goawayData(reason: string | undefined): Buffer | undefined {
  return reason === undefined ? undefined : Buffer.from(JSON.stringify({ reason }));
}
