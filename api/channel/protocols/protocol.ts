import { z } from 'zod';
import type { DeviceMessage } from '../../../shared/db/tables/channel-messages.ts';
import { isJsonObject, parseJson } from '../../../shared/domain/json.ts';

/**
 * WebSocket close codes and reasons. Codes below 4000 come from RFC 6455, the others from LeanCloud
 * (protocol/errors.md#channel-codes).
 */
export const closeReasons = {
  goingAway: { code: 1001, reason: 'GOING_AWAY' },
  tooManyFrames: { code: 1008, reason: 'TOO_MANY_FRAMES' },
  tryAgainLater: { code: 1013, reason: 'TRY_AGAIN_LATER' },
  appNotAvailable: { code: 4100, reason: 'APP_NOT_AVAILABLE' },
  duplicatedLogin: { code: 4101, reason: 'DUPLICATED_LOGIN' },
  invalidLogin: { code: 4103, reason: 'INVALID_LOGIN' },
  readTimeout: { code: 4107, reason: 'READ_TIMEOUT' },
  loginTimeout: { code: 4108, reason: 'LOGIN_TIMEOUT' },
  unparseable: { code: 4114, reason: 'UNPARSEABLE_RAW_MESSAGE' },
} as const;

export type CloseReason = keyof typeof closeReasons;

/** End of a connection. */
export interface CloseEvent {
  code: number;
  /** Network failure, or violation of the protocol by the device. */
  error: Error | undefined;
}

/**
 * Command of a device, in a form that all protocols share. A serial is a number that the reply
 * repeats.
 */
export type ClientCommand =
  | { kind: 'login'; appId: string; installationId: string; serial?: number }
  /** Login whose ids are malformed. */
  | { kind: 'invalidLogin' }
  | { kind: 'heartbeat'; serial?: number }
  | { kind: 'ack'; pushIds: number[] }
  | { kind: 'otherService'; request: OtherServiceRequest }
  /** Well-formed command that does not concern pushes. */
  | { kind: 'other' }
  | { kind: 'unparseable' };

/**
 * Request to another service on the same socket, such as instant messages. This server has no such
 * services.
 */
export interface OtherServiceRequest {
  service: number | undefined;
  peerId: string | undefined;
  serial: number | undefined;
}

/** Text or binary message. */
export interface Frame {
  data: string | Buffer;
  isBinary: boolean;
}

/**
 * Wire protocol: parses frames into commands and builds frames. Has no state and no side effects.
 */
export interface Protocol {
  /** WebSocket sub-protocol. Empty without a sub-protocol. */
  name: string;
  parse(data: Buffer, isBinary: boolean): ClientCommand;
  /**
   * Returns the reply to a heartbeat. Returns undefined if the protocol uses WebSocket pings
   * instead.
   */
  heartbeat(serial: number | undefined): Frame | undefined;
  /** Returns the reply to a successful login, if the protocol has one. */
  loggedIn(serial: number | undefined): Frame | undefined;
  /**
   * Returns a frame with messages. `isOffline` is true if the messages were stored before the
   * login.
   */
  data(messages: readonly DeviceMessage[], isOffline: boolean): Frame;
  /** Returns the error reply to a request for another service. The connection stays open. */
  rejection(request: OtherServiceRequest): Frame | undefined;
  /**
   * Returns the command that asks a device to reconnect through the router, if the protocol has
   * one.
   */
  goAway(): Frame | undefined;
  /** Returns the error command that is sent before the socket closes, if the protocol has one. */
  closeNotice(closeNotice: CloseReason): Frame | undefined;
}

/**
 * Ids of a login. Control characters never reach SQL. The maximum lengths exceed the lengths of
 * real ids.
 */
export const loginMembers = z.object({
  appId: z.string().regex(/^[\w-]{1,64}$/),
  installationId: z.string().regex(/^[^\p{Cc}\p{Cs}]{1,256}$/u),
});

/** Parses acknowledged message ids, which are push ids. Ignores all other values. */
export function pushIdsOf(ids: (string | number)[]): number[] {
  const pushIds: number[] = [];
  for (const id of ids) {
    const pushId = /^\d{1,16}$/.test(String(id)) ? Number(id) : Number.NaN;
    if (Number.isSafeInteger(pushId)) pushIds.push(pushId);
  }
  return pushIds;
}

const ack = z.object({ ids: z.array(z.union([z.string(), z.number()])) });

/**
 * Text of most acknowledgements, which are the most frequent command. This form is parsed without
 * JSON for speed. Any other text is parsed as JSON, with the same result.
 */
const usualAck =
  /^\{"cmd":"ack"(?:,"appId":"[\w-]{1,64}")?(?:,"installationId":"[^"\\\p{Cc}]{1,256}")?,"ids":\["(\d{1,16}(?:","\d{1,16})*)"\]\}$/u;

function parseAck(data: Buffer): ClientCommand | undefined {
  const ids = usualAck.exec(data.toString())?.[1];
  return ids === undefined ? undefined : { kind: 'ack', pushIds: pushIdsOf(ids.split('","')) };
}

function parseValue(data: Buffer): unknown {
  try {
    return parseJson(data.toString('utf8'));
  } catch {
    return undefined;
  }
}

function parseCommand(command: { [key: string]: unknown }): ClientCommand {
  switch (command.cmd) {
    case 'login': {
      const result = loginMembers.safeParse(command);
      return result.success ? { kind: 'login', ...result.data } : { kind: 'invalidLogin' };
    }
    case 'ack': {
      const result = ack.safeParse(command);
      return result.success
        ? { kind: 'ack', pushIds: pushIdsOf(result.data.ids) }
        : { kind: 'unparseable' };
    }
    default:
      return { kind: Object.keys(command).length === 0 ? 'heartbeat' : 'other' };
  }
}

const text = (data: string | Buffer): Frame => ({ data, isBinary: false });
const heartbeat = text('{}');

/**
 * Frames by their list of messages. All devices that get the same messages share one list object,
 * so its frame is built once.
 */
const frames = new WeakMap<readonly DeviceMessage[], Frame>();

function dataText(messages: readonly DeviceMessage[]): string {
  const ids = messages.map(({ pushId }) => `"${pushId}"`).join(',');
  return `{"cmd":"data","ids":[${ids}],"msg":[${messages.map(({ content }) => content).join(',')}]}`;
}

function dataFrame(messages: readonly DeviceMessage[]): Frame {
  const cached = frames.get(messages);
  if (cached) return cached;
  const frame = text(Buffer.from(dataText(messages)));
  frames.set(messages, frame);
  return frame;
}

/**
 * JSON protocol (protocol/channel.md#json-form): text frames without a sub-protocol. The reply to
 * `{}` is `{}`.
 */
export const jsonProtocol: Protocol = {
  name: '',
  parse(data, isBinary) {
    const usual = isBinary ? undefined : parseAck(data);
    if (usual) return usual;
    const value = isBinary ? undefined : parseValue(data);
    return isJsonObject(value) ? parseCommand(value) : { kind: 'unparseable' };
  },
  heartbeat: () => heartbeat,
  loggedIn: () => undefined,
  data: dataFrame,
  rejection: () => undefined,
  goAway: () => undefined,
  closeNotice: (reason) =>
    closeReasons[reason].code < 4000
      ? undefined
      : text(JSON.stringify({ cmd: 'error', ...closeReasons[reason] })),
};
