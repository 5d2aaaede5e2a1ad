import { z } from 'zod';
import type { DeviceMessage } from '../../../shared/db/tables/channel/inbox.ts';
import { isJsonObject, parseJson } from '../../../shared/domain/json.ts';
import { closeReasons } from '../close-reason.ts';
import { type ClientCommand, loginMembers, type Protocol, pushIdsOf } from './protocol.ts';

const ack = z.object({ ids: z.array(z.union([z.string(), z.number()])) });

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

const text = (data: string | Buffer) => ({ data, isBinary: false });
const heartbeat = text('{}');

/** Frames of single messages: a message goes to many devices, its frame is built once. */
const singles = new WeakMap<DeviceMessage, Buffer>();

function dataFrame(messages: DeviceMessage[]): string {
  const ids = messages.map(({ pushId }) => `"${pushId}"`).join(',');
  return `{"cmd":"data","ids":[${ids}],"msg":[${messages.map(({ content }) => content).join(',')}]}`;
}

function singleFrame(message: DeviceMessage): Buffer {
  const known = singles.get(message);
  if (known) return known;
  const frame = Buffer.from(dataFrame([message]));
  singles.set(message, frame);
  return frame;
}

/** JSON protocol (protocol/channel.md#json-form): text frames, no sub-protocol; replies to `{}` with `{}`. */
export const jsonProtocol: Protocol = {
  name: '',
  parse(data, isBinary) {
    const value = isBinary ? undefined : parseValue(data);
    return isJsonObject(value) ? parseCommand(value) : { kind: 'unparseable' };
  },
  heartbeat: () => heartbeat,
  loggedIn: () => undefined,
  data: (messages) => {
    const [first, ...more] = messages;
    return text(first && more.length === 0 ? singleFrame(first) : dataFrame(messages));
  },
  rejection: () => undefined,
  goAway: () => undefined,
  closeNotice: (reason) =>
    closeReasons[reason].code < 4000
      ? undefined
      : text(JSON.stringify({ cmd: 'error', ...closeReasons[reason] })),
};
