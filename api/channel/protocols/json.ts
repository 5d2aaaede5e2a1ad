import { z } from 'zod';
import type { DeviceMessage } from '../../../shared/db/tables/channel-messages.ts';
import { isJsonObject, parseJson } from '../../../shared/domain/json.ts';
import {
  type ClientCommand,
  closeReasons,
  type Frame,
  loginMembers,
  type Protocol,
  pushIdsOf,
} from './protocol.ts';

const ack = z.object({ ids: z.array(z.union([z.string(), z.number()])) });

/**
 * Acknowledgement as clients send it, which is most of what devices send: read without building its values. Any other text
 * is parsed as JSON, with the same result.
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
      return result.success ? { kind: 'ack', pushIds: pushIdsOf(result.data.ids) } : { kind: 'unparseable' };
    }
    default:
      return { kind: Object.keys(command).length === 0 ? 'heartbeat' : 'other' };
  }
}

const text = (data: string | Buffer): Frame => ({ data, isBinary: false });
const heartbeat = text('{}');

/** Frames by messages: those that go to many devices are one object, and their frame is built once. */
const frames = new WeakMap<readonly DeviceMessage[], Frame>();

function dataText(messages: readonly DeviceMessage[]): string {
  const ids = messages.map(({ pushId }) => `"${pushId}"`).join(',');
  return `{"cmd":"data","ids":[${ids}],"msg":[${messages.map(({ content }) => content).join(',')}]}`;
}

function dataFrame(messages: readonly DeviceMessage[]): Frame {
  const known = frames.get(messages);
  if (known) return known;
  const frame = text(Buffer.from(dataText(messages)));
  frames.set(messages, frame);
  return frame;
}

/** JSON protocol (protocol/channel.md#json-form): text frames, no sub-protocol; replies to `{}` with `{}`. */
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
